package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/thaw-mcp/thaw/task"
)

// maxHead is what a head may have of the 400 KB of an item, in bytes: the rest is for what
// this package and newer versions keep beside it.
const maxHead = 384 << 10

// Create implements task.Store.
func (s *Store) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	if err := task.CheckWrite(h, parts); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("dynamostore: create: %w", err)
	}
	h = h.Kept()
	h.Version = 1
	head, write := encodeHead(&h), newWrite()
	if n := size(head); n > maxHead {
		return tooLarge(n)
	}
	if err := s.putParts(ctx, &h, write, true, parts); err != nil {
		return err
	}
	for name, value := range headKey(h.ID) {
		head[name] = value
	}
	head[attrBegun] = text(write)
	if n := count(parts, task.PartEntry); n > 0 {
		head[attrBegunWith] = number(n)
	}
	if count(parts, task.PartCall) > 0 {
		head[attrCalled] = text(write)
	}
	if count(parts, task.PartAnswer) > 0 {
		head[attrWrites] = list(write)
	}
	_, err := s.send(ctx, func(ctx context.Context) error {
		_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &s.table, Item: head, ConditionExpression: aws.String("attribute_not_exists(p)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return err
	})
	old, there, err := s.present(ctx, headKey(h.ID), err)
	switch {
	case err != nil:
		return s.failed(ctx, "create", err)
	case !there:
		return nil
	case old == nil:
		return s.failed(ctx, "create", errors.New("a head was there and is gone"))
	}
	found, err := decodeHead(old)
	switch begun, _ := readText(old[attrBegun]); {
	case err != nil:
		return s.failed(ctx, "create", err)
	case begun == write, found.Equal(h): // an earlier try of this write, or an earlier Create
		return nil
	}
	return task.ErrExists
}

// Commit implements task.Store.
func (s *Store) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	if err := task.CheckWrite(next, parts); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("dynamostore: commit: %w", err)
	}
	next = next.Kept()
	head, write := encodeHead(&next), newWrite()
	if n := size(head); n > maxHead {
		return tooLarge(n)
	}
	if err := s.putParts(ctx, &next, write, false, parts); err != nil {
		return err
	}
	update := swap(head, next.Version-1, now, write, count(parts, task.PartCall) > 0, count(parts, task.PartAnswer) > 0)
	update.TableName, update.Key = &s.table, headKey(next.ID)
	_, err := s.send(ctx, func(ctx context.Context) error {
		_, err := s.client.UpdateItem(ctx, update)
		return err
	})
	old, lost, err := s.present(ctx, update.Key, err)
	switch {
	case err != nil:
		return s.failed(ctx, "commit", err)
	case !lost:
		return nil
	case old == nil:
		return task.ErrNotFound
	}
	found, err := decodeHead(old)
	switch {
	case err != nil:
		return s.failed(ctx, "commit", err)
	case found.Equal(next): // by an earlier try of this write, or an earlier Commit
		return nil
	case !found.Expires.IsZero() && found.Expires.UnixMilli() <= now.UnixMilli():
		return task.ErrNotFound
	}
	return &task.Conflict{Now: found}
}

// swap is the update that makes head of the one with this version. It sets or removes what
// this version of the package knows, whether it changes or not.
func swap(head item, version uint64, now time.Time, write string, called, answered bool) *dynamodb.UpdateItemInput {
	values := item{":was": number(version), ":now": number(now.UnixMilli())}
	var sets, removes []string
	for _, name := range headAttributes {
		if value, ok := head[name]; ok {
			sets = append(sets, name+" = :"+name)
			values[":"+name] = value
		} else {
			removes = append(removes, name)
		}
	}
	if called {
		sets = append(sets, attrCalled+" = if_not_exists("+attrCalled+", :write)") // once
		values[":write"] = text(write)
	}
	if answered {
		sets = append(sets, attrWrites+" = list_append(if_not_exists("+attrWrites+", :none), :writes)")
		values[":none"], values[":writes"] = list(), list(write)
	}
	expression := "SET " + strings.Join(sets, ", ")
	if len(removes) > 0 {
		expression += " REMOVE " + strings.Join(removes, ", ")
	}
	return &dynamodb.UpdateItemInput{
		UpdateExpression: &expression, ConditionExpression: aws.String("v = :was AND ex > :now"), ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// headAttributes are the attributes that every write of a head sets or removes.
var headAttributes = func() []string {
	names := []string{attrTTL, attrShard}
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}()

// present looks at the item that did not meet a condition, if that is what err says; nil if
// there is none. Otherwise it gives err back.
func (s *Store) present(ctx context.Context, key item, err error) (old item, conditionFailed bool, _ error) {
	old, conditionFailed = unmet(err)
	if !conditionFailed {
		return nil, false, err
	}
	if old == nil {
		if old, err = s.get(ctx, key); err != nil {
			return nil, true, err
		}
	}
	return old, true, nil
}

func count(parts []task.Part, k task.Kind) int {
	n := 0
	for i := range parts {
		if parts[i].Kind == k {
			n++
		}
	}
	return n
}

func list(texts ...string) types.AttributeValue {
	l := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	for _, t := range texts {
		l.Value = append(l.Value, text(t))
	}
	return l
}

func tooLarge(n int) error {
	return fmt.Errorf("dynamostore: %w: the head has %d bytes; allowed are %d", task.ErrTooLarge, n, maxHead)
}
