package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/thaw-mcp/thaw/internal/awsconfig"
	"github.com/thaw-mcp/thaw/task"
)

// Options may be nil.
type Options struct {
	// Attempt is how long DynamoDB gets to answer one request before that is sent again.
	// Default 5 s.
	Attempt time.Duration
}

// Store is a task.Store and a task.Sweeper. It is safe for concurrent use, and any number of
// them may share a table.
type Store struct {
	client  client
	table   string
	attempt time.Duration
}

// client is what a Store asks of DynamoDB.
type client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// isTableName says whether DynamoDB lets a table be called so. A regular expression with these
// bounds is compiled at every cold start, for 0.8 ms.
func isTableName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	return 3 <= len(name) && len(name) <= 255 && strings.Trim(name, allowed) == ""
}

// New returns a Store on a table. It does no I/O: that the table is missing or otherwise
// made is the error of the first use.
func New(cfg aws.Config, table string, o *Options) (*Store, error) {
	if !isTableName(table) {
		return nil, errors.New("dynamostore: no name of a table; allowed are 3 to 255 characters of a-z A-Z 0-9 _ . and -")
	}
	s := &Store{table: table, attempt: defaultAttempt, client: dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{} // send does that
	})}
	if o != nil && o.Attempt > 0 {
		s.attempt = o.Attempt
	}
	return s, nil
}

// Scheme is the setting "dynamodb:TABLE", with the region and credentials of the process.
func Scheme() task.StoreScheme {
	return task.StoreScheme{
		Name:  "dynamodb",
		Usage: "dynamodb:TABLE: a table of DynamoDB that all instances share, such as dynamodb:thaw-tasks",
		Open: func(ctx context.Context, table string) (task.Store, error) {
			cfg, err := awsconfig.Load(ctx)
			if err != nil {
				return nil, fmt.Errorf("AWS configuration: %w", err)
			}
			s, err := New(cfg, table, nil)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
	}
}
