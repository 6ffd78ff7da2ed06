package dynamostore

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/thaw-mcp/thaw/task"
)

// Items that lie in tables stay readable: the files here are never changed, a new form is a
// new file. That of heads is with their tests.

func TestGoldenPart(t *testing.T) {
	old := golden(t, "part-1.json")
	want := task.Part{Kind: task.PartEntry, Epoch: 3, Seq: 7, Data: []byte{0, 0xff}}
	got, err := (&Store{}).whole(t.Context(), testID, stored{task.Part{Kind: task.PartEntry, Seq: 7}, old})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v, %v; want %+v", got, err, want)
	}
	h := fullHead()
	now := cutUp(&h, &want, partSort(&want, "", false), "X#w#0#")
	if len(now) != 1 || show(t, now[0]) != show(t, old) {
		t.Errorf("written as\n%s\nwant\n%s", show(t, now[0]), show(t, old))
	}
	for name, edit := range map[string]func(item){
		"cut":              func(i item) { i[attrData] = binary([]byte{0}) },
		"longer":           func(i item) { i[attrData] = binary([]byte{0, 0xff, 0}) },
		"no data":          func(i item) { delete(i, attrData) },
		"data a text":      func(i item) { i[attrData] = text("data") },
		"epoch a text":     func(i item) { i[attrEpoch] = text("3") },
		"length a text":    func(i item) { i[attrLength] = text("2") },
		"length below 0":   func(i item) { i[attrLength] = number(-2) },
		"the rest is data": func(i item) { i[attrRest] = binary(nil) },
	} {
		i := golden(t, "part-1.json")
		edit(i)
		if _, err := (&Store{}).whole(t.Context(), testID, stored{first: i}); !errors.Is(err, task.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

func TestGoldenUse(t *testing.T) {
	i := golden(t, "use-1.json")
	want := useRecord{
		Used: task.Used{Round: 2, Answers: [32]byte{1, 2, 3}, Deadline: time.Date(2026, 7, 28, 12, 1, 0, 123_000_000, time.UTC), Done: true, Response: []byte(`{"ok":true}`)},

		write: [16]byte{9, 8, 7},
	}
	if got, err := readUse(i); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v, %v; want %+v", got, err, want)
	}
	i[useReleased] = i[useWrite]
	delete(i, useWrite)
	delete(i, useResponse)
	want.write, want.released, want.Response = [16]byte{}, want.write, nil
	if got, err := readUse(i); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("given back, read as %+v, %v; want %+v", got, err, want)
	}
	for name, value := range map[string]types.AttributeValue{
		useRound: text("2"), useWrite: binary(bytes.Repeat([]byte{1}, 15)), useReleased: binary(nil), useAnswers: text(""), useDeadline: text(""), useResponse: text(""),
	} {
		i := golden(t, "use-1.json")
		i[name] = value
		if _, err := readUse(i); !errors.Is(err, task.ErrCorrupt) {
			t.Errorf("a wrong %s: %v, want ErrCorrupt", name, err)
		}
	}
}
