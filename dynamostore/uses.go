package dynamostore

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/thaw-mcp/thaw/task"
)

// The attributes of the record of a call's rounds.
const (
	useRound    = "r"
	useWrite    = "u"
	useAnswers  = "g"
	useDeadline = "dl"
	useDone     = "k" // present once the round is finished or given back
	useReleased = "f" // the write that gave it back, which then has no claim
	useResponse = "b"
)

func useKey(call string) item { return key(usePrefix+call, useSort) }

// Claim implements task.Uses.
func (s *Store) Claim(ctx context.Context, u task.Use) (first bool, prev task.Used, err error) {
	if err := u.Check(); err != nil {
		return false, task.Used{}, err
	}
	if err := ctx.Err(); err != nil {
		return false, task.Used{}, fmt.Errorf("dynamostore: claim: %w", err)
	}
	record := useKey(u.Call)
	record[useRound], record[useWrite], record[useAnswers] = number(u.Round), binary(u.Write[:]), binary(u.Answers[:])
	record[useDeadline], record[timeToLive] = number(u.Deadline.UnixMilli()), inSeconds(u.Expires)
	_, err = s.send(ctx, func(ctx context.Context) error {
		_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &s.table, Item: record,
			ConditionExpression:                 aws.String("attribute_not_exists(p) OR r < :r OR (r = :r AND attribute_exists(f) AND g = :g)"),
			ExpressionAttributeValues:           item{":r": record[useRound], ":g": record[useAnswers]},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	})
	old, taken, err := s.present(ctx, useKey(u.Call), err)
	switch {
	case err != nil:
		return false, task.Used{}, s.failed(ctx, "claim", err)
	case !taken:
		return true, task.Used{}, nil
	case old == nil:
		return false, task.Used{}, s.failed(ctx, "claim", errors.New("a record was there and is gone"))
	}
	found, err := readUse(old)
	switch {
	case err != nil:
		return false, task.Used{}, s.failed(ctx, "claim", err)
	case found.Round == u.Round && found.write == u.Write && !found.Done:
		return true, task.Used{}, nil
	}
	return false, found.Used, nil
}

// Finish implements task.Uses.
func (s *Store) Finish(ctx context.Context, u task.Use, response []byte) error {
	update, values := "SET k = :k", item{}
	if kept := task.KeptResponse(response); kept != nil {
		update, values[":b"] = update+", b = :b", binary(kept)
	}
	return s.end(ctx, "finish", u, update, values, func(found useRecord, _ bool) bool {
		return found.Round == u.Round && found.write == u.Write // finished before
	})
}

// Release implements task.Uses.
func (s *Store) Release(ctx context.Context, u task.Use) error {
	return s.end(ctx, "release", u, "SET k = :k, f = :u REMOVE u", item{}, func(found useRecord, doubt bool) bool {
		return doubt && found.Round == u.Round && found.released == u.Write // by a try before
	})
}

// end updates the record of the unfinished round that u claimed. done tells whether the record
// that is there instead is what the update has made of it before; doubt is that of send.
func (s *Store) end(ctx context.Context, what string, u task.Use, update string, values item, done func(found useRecord, doubt bool) bool) error {
	if err := u.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("dynamostore: %s: %w", what, err)
	}
	values[":r"], values[":u"], values[":k"] = number(u.Round), binary(u.Write[:]), &types.AttributeValueMemberBOOL{Value: true}
	doubt, err := s.send(ctx, func(ctx context.Context) error {
		_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: useKey(u.Call), UpdateExpression: &update, ExpressionAttributeValues: values,
			ConditionExpression:                 aws.String("r = :r AND u = :u AND attribute_not_exists(k)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	})
	old, refused, err := s.present(ctx, useKey(u.Call), err)
	if err != nil {
		return s.failed(ctx, what, err)
	}
	if !refused {
		return nil
	}
	if old != nil {
		found, err := readUse(old)
		if err != nil {
			return s.failed(ctx, what, err)
		}
		if done(found, doubt) {
			return nil
		}
	}
	if doubt { // it may have been applied before somebody claimed a later round
		return s.failed(ctx, what, errors.New("an answer was lost, and the round is no longer there"))
	}
	return task.ErrNotClaimed
}

// useRecord is the record of a call's rounds.
type useRecord struct {
	task.Used
	write    [16]byte // that claimed the round
	released [16]byte // that gave it back
}

func readUse(i item) (u useRecord, err error) {
	round, err := readInteger(i[useRound])
	if err != nil {
		return u, wrongAttribute(useRound, err)
	}
	u.Round = int(round)
	for name, to := range map[string][]byte{useWrite: u.write[:], useReleased: u.released[:], useAnswers: u.Answers[:]} {
		if err := readInto(to, i[name]); err != nil {
			return u, wrongAttribute(name, err)
		}
	}
	if u.Deadline, err = readTime(i[useDeadline]); err != nil {
		return u, wrongAttribute(useDeadline, err)
	}
	if u.Response, err = readBytes(i[useResponse]); err != nil {
		return u, wrongAttribute(useResponse, err)
	}
	u.Done = i[useDone] != nil
	return u, nil
}
