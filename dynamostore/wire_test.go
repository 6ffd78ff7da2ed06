package dynamostore

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// wire is an attribute as DynamoDB has it in JSON.
type wire struct {
	S    *string
	N    *string
	B    *[]byte
	BOOL *bool
	L    *[]wire
	M    *map[string]wire
}

func (w wire) attribute() types.AttributeValue {
	switch {
	case w.S != nil:
		return &types.AttributeValueMemberS{Value: *w.S}
	case w.N != nil:
		return &types.AttributeValueMemberN{Value: *w.N}
	case w.B != nil:
		return &types.AttributeValueMemberB{Value: *w.B}
	case w.BOOL != nil:
		return &types.AttributeValueMemberBOOL{Value: *w.BOOL}
	case w.L != nil:
		l := []types.AttributeValue{}
		for _, element := range *w.L {
			l = append(l, element.attribute())
		}
		return &types.AttributeValueMemberL{Value: l}
	case w.M != nil:
		m := item{}
		for name, value := range *w.M {
			m[name] = value.attribute()
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	panic("an attribute without a value")
}

// golden reads an item as a table has it.
func golden(tb testing.TB, name string) item {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	var m map[string]wire
	if err := json.Unmarshal(b, &m); err != nil {
		tb.Fatal(err)
	}
	return wire{M: &m}.attribute().(*types.AttributeValueMemberM).Value
}

// show is an item as text, in which two that are equal are the same.
func show(tb testing.TB, i item) string {
	tb.Helper()
	b, err := json.MarshalIndent(jsonOf(&types.AttributeValueMemberM{Value: i}), "", "\t")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func jsonOf(a types.AttributeValue) any {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": a.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": a.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": a.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": a.Value}
	case *types.AttributeValueMemberL:
		l := []any{}
		for _, element := range a.Value {
			l = append(l, jsonOf(element))
		}
		return map[string]any{"L": l}
	case *types.AttributeValueMemberM:
		m := map[string]any{}
		for name, value := range a.Value {
			m[name] = jsonOf(value)
		}
		return map[string]any{"M": m}
	}
	panic(fmt.Sprintf("no JSON for a %T", a))
}
