package dynamo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/task"
)

// place is a Store with what a test does behind its back. It is a storetest.Cutter and a
// storetest.Extender.
type place struct {
	*dynamostore.Store
	client *dynamodb.Client
	table  string
}

func open(tb testing.TB, cfg aws.Config, table string) *place {
	tb.Helper()
	s, err := dynamostore.New(cfg, table, &dynamostore.Options{Attempt: time.Minute}) // they are slow under the load of some tests
	if err != nil {
		tb.Fatal(err)
	}
	return &place{s, dynamodb.NewFromConfig(cfg), table}
}

type item = map[string]types.AttributeValue

func text(i item, name string) string {
	s, _ := i[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func number(i item, name string) string {
	n, _ := i[name].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}

// items are all of a partition, in order.
func (p *place) items(tb testing.TB, partition string) []item {
	tb.Helper()
	var all []item
	for pages := dynamodb.NewQueryPaginator(p.client, &dynamodb.QueryInput{
		TableName: &p.table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("p = :p"),
		ExpressionAttributeValues: item{":p": &types.AttributeValueMemberS{Value: partition}},
	}); pages.HasMorePages(); {
		page, err := pages.NextPage(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

// sorts are the sort keys of a partition, in order.
func (p *place) sorts(tb testing.TB, partition string) []string {
	tb.Helper()
	var all []string
	for _, i := range p.items(tb, partition) {
		all = append(all, text(i, "s"))
	}
	return all
}

// remove takes an item away, which has to be there. That is no condition of the request: one that is
// sent again, after a lost answer, would not meet it.
func (p *place) remove(tb testing.TB, partition, sort string) {
	tb.Helper()
	if !slices.Contains(p.sorts(tb, partition), sort) {
		tb.Fatalf("%s has no %s", partition, sort)
	}
	key := item{"p": &types.AttributeValueMemberS{Value: partition}, "s": &types.AttributeValueMemberS{Value: sort}}
	if _, err := p.client.DeleteItem(tb.Context(), &dynamodb.DeleteItemInput{TableName: &p.table, Key: key}); err != nil {
		tb.Fatal(err)
	}
}

// Cut implements storetest.Cutter.
func (p *place) Cut(tb testing.TB, id string, part task.Part) {
	tb.Helper()
	const write = "[A-Za-z0-9_-]{8}"
	sort := regexp.MustCompile("^(?s:" + map[task.Kind]string{
		task.PartCall:     "C#" + write,
		task.PartEntry:    fmt.Sprintf("(B#%s|J)#%010d", write, part.Seq),
		task.PartQuestion: fmt.Sprintf("Q#%010d#%s", part.Epoch, regexp.QuoteMeta(part.Name)),
		task.PartAnswer:   "I#" + regexp.QuoteMeta(part.Name) + "#" + write,
		task.PartOutcome:  fmt.Sprintf("O#%010d", part.Epoch),
	}[part.Kind] + ")$")
	all := p.items(tb, "T#"+id)
	for _, i := range all {
		if !sort.MatchString(text(i, "s")) {
			continue
		}
		cut := text(i, "s")
		if rest := text(i, "y"); rest != "" {
			for _, piece := range all {
				if strings.HasPrefix(text(piece, "s"), rest) {
					cut = text(piece, "s")
				}
			}
		}
		p.remove(tb, "T#"+id, cut)
		return
	}
	tb.Fatalf("there is no part like that in %q", p.sorts(tb, "T#"+id))
}

func headKey(id string) item {
	return item{"p": &types.AttributeValueMemberS{Value: "T#" + id}, "s": &types.AttributeValueMemberS{Value: "H"}}
}

// Extend implements storetest.Extender.
func (p *place) Extend(tb testing.TB, id, value string) {
	tb.Helper()
	if _, err := p.client.UpdateItem(tb.Context(), &dynamodb.UpdateItemInput{
		TableName: &p.table, Key: headKey(id), UpdateExpression: aws.String("SET zz = :zz"), ConditionExpression: aws.String("attribute_exists(p)"),
		ExpressionAttributeValues: item{":zz": &types.AttributeValueMemberS{Value: value}},
	}); err != nil {
		tb.Fatal(err)
	}
}

// Extension implements storetest.Extender.
func (p *place) Extension(tb testing.TB, id string) string {
	tb.Helper()
	out, err := p.client.GetItem(tb.Context(), &dynamodb.GetItemInput{TableName: &p.table, Key: headKey(id), ConsistentRead: aws.Bool(true)})
	if err != nil {
		tb.Fatal(err)
	}
	return text(out.Item, "zz")
}
