package dynamostore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/thaw-mcp/thaw/task"
)

// item is an item of the table, or some of its attributes.
type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func binary(b []byte) types.AttributeValue {
	if b == nil {
		b = []byte{} // the SDK would send no value at all
	}
	return &types.AttributeValueMemberB{Value: b}
}

func number[T ~int | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](n T) types.AttributeValue {
	if n < 0 {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(uint64(n), 10)}
}

// The readers below take an attribute that is missing for the zero value.

func readText(a types.AttributeValue) (string, error) {
	switch a := a.(type) {
	case nil:
		return "", nil
	case *types.AttributeValueMemberS:
		return a.Value, nil
	}
	return "", fmt.Errorf("is a %T, not a string", a)
}

func readTexts(a types.AttributeValue) ([]string, error) {
	switch a := a.(type) {
	case nil:
		return nil, nil
	case *types.AttributeValueMemberL:
		texts := make([]string, len(a.Value))
		for n, element := range a.Value {
			var err error
			if texts[n], err = readText(element); err != nil {
				return nil, err
			}
		}
		return texts, nil
	}
	return nil, fmt.Errorf("is a %T, not a list", a)
}

func readBytes(a types.AttributeValue) ([]byte, error) {
	switch a := a.(type) {
	case nil:
		return nil, nil
	case *types.AttributeValueMemberB:
		return append([]byte{}, a.Value...), nil // never nil: an empty value is not a missing one
	}
	return nil, fmt.Errorf("is a %T, not binary", a)
}

func readNumber[T ~uint8 | ~uint16 | ~uint32 | ~uint64](a types.AttributeValue) (T, error) {
	switch a := a.(type) {
	case nil:
		return 0, nil
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseUint(a.Value, 10, 64)
		if err != nil || uint64(T(n)) != n {
			return 0, fmt.Errorf("is %s, out of range", a.Value)
		}
		return T(n), nil
	}
	return 0, fmt.Errorf("is a %T, not a number", a)
}

func readInteger(a types.AttributeValue) (int64, error) {
	switch a := a.(type) {
	case nil:
		return 0, nil
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(a.Value, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("is %s, out of range", a.Value)
		}
		return n, nil
	}
	return 0, fmt.Errorf("is a %T, not a number", a)
}

func readTime(a types.AttributeValue) (time.Time, error) {
	n, err := readInteger(a)
	if a == nil || err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(n).UTC(), nil
}

func wrongAttribute(name string, err error) error {
	return fmt.Errorf("dynamostore: %w: attribute %s %w", task.ErrCorrupt, name, err)
}

// inSeconds is a time for timeToLive: rounded up, so that nothing is removed before it.
func inSeconds(t time.Time) types.AttributeValue {
	return number(t.Add(time.Second - 1).Unix())
}

// sortOf is the sort key of an item.
func sortOf(i item) string {
	s, _ := readText(i[sortKey]) // which is a string, or the table would not have it
	return s
}

func key(p, s string) item { return item{partitionKey: text(p), sortKey: text(s)} }

// get reads one item strongly; nil if it is not there.
func (s *Store) get(ctx context.Context, key item) (item, error) {
	var out *dynamodb.GetItemOutput
	_, err := s.send(ctx, func(ctx context.Context) (err error) {
		out, err = s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: key, ConsistentRead: aws.Bool(true)})
		return err
	})
	if err != nil || len(out.Item) == 0 {
		return nil, err
	}
	return out.Item, nil
}

// between reads strongly the items of a partition whose sort keys are from lowest to highest,
// in order. An answer of DynamoDB's has at most 1 MB of them.
func (s *Store) between(ctx context.Context, p, lowest, highest string) ([]item, error) {
	in := &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("p = :p AND s BETWEEN :lowest AND :highest"),
		ExpressionAttributeValues: item{":p": text(p), ":lowest": text(lowest), ":highest": text(highest)},
	}
	var found []item
	for {
		var out *dynamodb.QueryOutput
		if _, err := s.send(ctx, func(ctx context.Context) (err error) {
			out, err = s.client.Query(ctx, in)
			return err
		}); err != nil {
			return nil, err
		}
		found = append(found, out.Items...)
		if len(out.LastEvaluatedKey) == 0 {
			return found, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// size is what an item counts towards DynamoDB's limits and units, in bytes.
func size(i item) int {
	n := 0
	for name, a := range i {
		n += len(name) + sizeOf(a)
	}
	return n
}

func sizeOf(a types.AttributeValue) int {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		return len(a.Value)
	case *types.AttributeValueMemberB:
		return len(a.Value)
	case *types.AttributeValueMemberN:
		return (len(a.Value)+1)/2 + 1
	case *types.AttributeValueMemberL:
		n := 3
		for _, element := range a.Value {
			n += 1 + sizeOf(element)
		}
		return n
	case *types.AttributeValueMemberM:
		return 3 + len(a.Value) + size(a.Value)
	}
	return 1
}
