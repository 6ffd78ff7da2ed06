package dynamostore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/thaw-mcp/thaw/task"
)

// Due implements task.Sweeper. The index lags behind the heads, by less than a second as a
// rule.
func (s *Store) Due(ctx context.Context, before time.Time, n, limit int) ([]string, error) {
	if err := task.CheckDue(n, limit); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dynamostore: list due tasks: %w", err)
	}
	in := &dynamodb.QueryInput{
		TableName: &s.table, IndexName: aws.String(indexName),
		KeyConditionExpression:    aws.String("q = :shard AND d <= :before"),
		ExpressionAttributeValues: item{":shard": shard(n), ":before": number(before.UnixMilli())},
	}
	var ids []string
	for {
		in.Limit = aws.Int32(int32(min(limit-len(ids), 1000)))
		var out *dynamodb.QueryOutput
		if _, err := s.send(ctx, func(ctx context.Context) (err error) {
			out, err = s.client.Query(ctx, in)
			return err
		}); err != nil {
			return nil, s.failed(ctx, "list due tasks", err)
		}
		for _, i := range out.Items {
			p, err := readText(i[partitionKey])
			if err != nil {
				return nil, s.failed(ctx, "list due tasks", err)
			}
			ids = append(ids, strings.TrimPrefix(p, taskPrefix))
		}
		if len(out.LastEvaluatedKey) == 0 || len(ids) >= limit {
			return ids, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}
