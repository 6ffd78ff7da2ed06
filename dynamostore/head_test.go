package dynamostore

import (
	"bufio"
	"errors"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/thaw-mcp/thaw/task"
)

const testID = "019bf2f4-7c1e-8a3b-9d7e-0123456789ab"

// fullHead has something in every field.
func fullHead() task.Head {
	at := time.Date(2026, 7, 28, 12, 0, 0, 123_000_000, time.UTC)
	h := task.Head{
		ID: testID, Tool: "provision",
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Format: 1, Revision: 4, Version: 7,
		Status: task.InputRequired, Phase: task.Asking, Created: at, Updated: at.Add(2 * time.Second), Expires: at.Add(24 * time.Hour),
		Poll: 1500 * time.Millisecond, Message: "waits for é", Epoch: 3, Claims: 5, Worker: "0123456789abcdef01234567", LeaseUntil: at.Add(time.Minute),
		Interrupted: 1, Sends: 2, Sent: at.Add(3 * time.Second), Wake: at.Add(65 * time.Second), Journal: 9,
		Asked: []task.Asked{
			{Key: "agree", Digest: [16]byte{1, 2, 3}, Inline: []byte(`{"method":"elicitation/create"}`)},
			{Key: "agree~2", Epoch: 3},
			{Key: "empty", Inline: []byte{}},
		},
		Outcome: &task.OutcomeRef{Epoch: 3, Inline: []byte{0, 0xff}},
	}
	for i := range h.Owner {
		h.Owner[i] = byte(i)
	}
	return h
}

func TestFullHeadIsFull(t *testing.T) {
	v := reflect.ValueOf(fullHead())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is zero, so no test here looks at it", v.Type().Field(i).Name)
		}
	}
}

// Heads that lie in tables stay readable. The file is never changed: a new form is a new file.
func TestGoldenHead(t *testing.T) {
	old := golden(t, "head-1.json")
	got, err := decodeHead(old)
	if err != nil || !reflect.DeepEqual(got, fullHead()) {
		t.Errorf("read as\n%+v, %v; want\n%+v", got, err, fullHead())
	}
	h := fullHead()
	now := encodeHead(&h)
	maps.Copy(now, headKey(h.ID))
	for _, name := range []string{attrBegun, attrBegunWith, attrCalled, attrWrites} { // of the writes, not of the head
		now[name] = old[name]
	}
	if got, want := show(t, now), show(t, old); got != want {
		t.Errorf("written as\n%s\nwant\n%s", got, want)
	}
}

func TestHeadOfANewerVersion(t *testing.T) {
	i := golden(t, "head-1.json")
	i["new"] = list("something")
	if h, err := decodeHead(i); err != nil || !reflect.DeepEqual(h, fullHead()) {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestEmptyHead(t *testing.T) {
	h := task.Head{ID: testID}
	i := encodeHead(&h)
	if len(i) != 1 || i[attrExpiry] == nil {
		t.Errorf("an empty head is %s, want its expiry alone", show(t, i))
	}
	maps.Copy(i, headKey(testID))
	if got, err := decodeHead(i); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("%+v, %v", got, err)
	}
}

// B-46: seconds with ten digits, and nothing is removed before it has expired.
func TestTimeToLive(t *testing.T) {
	at := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		expires time.Time
		want    string
	}{
		{"never", time.Time{}, ""},
		{"a full second", at, "1785240000"},
		{"a millisecond more", at.Add(time.Millisecond), "1785240001"},
		{"nearly the next second", at.Add(999 * time.Millisecond), "1785240001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := task.Head{ID: testID, Expires: c.expires}
			got, ok := encodeHead(&h)[attrTTL].(*types.AttributeValueMemberN)
			if ok != (c.want != "") || ok && got.Value != c.want {
				t.Errorf("%+v, want %q", got, c.want)
			}
			items := cutUp(&h, &task.Part{Data: make([]byte, pieceSize+1)}, "C#w", "X#w#0#")
			if len(items) != 2 {
				t.Fatalf("%d items, want 2", len(items))
			}
			for _, i := range items {
				part, ok := i[attrTTL].(*types.AttributeValueMemberN)
				if ok != (c.want != "") || ok && part.Value <= got.Value {
					t.Errorf("a part goes at %+v, its head at %+v", part, got)
				}
			}
		})
	}
}

func TestDecodeHeadRefuses(t *testing.T) {
	number := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	element := func(m item) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: m}}}
	}
	for _, c := range []struct {
		name, attribute string
		value           types.AttributeValue
		want            string
	}{
		{"no key", partitionKey, nil, "names no task"},
		{"another key", partitionKey, text("U#c"), "names no task"},
		{"a key that is a number", partitionKey, number("1"), "names no task"},
		{"a text that is a number", "tl", number("1"), "attribute tl"},
		{"a number that is a text", "v", text("1"), "attribute v"},
		{"a fraction", "v", number("1.5"), "attribute v is 1.5, out of range"},
		{"below zero", "v", number("-1"), "attribute v is -1, out of range"},
		{"phase out of range", "ph", number("256"), "attribute ph is 256, out of range"},
		{"epoch out of range", "ep", number("4294967296"), "attribute ep is 4294967296, out of range"},
		{"time out of range", "cr", number("9223372036854775808"), "attribute cr is 9223372036854775808, out of range"},
		{"expiry that is a text", attrExpiry, text("never"), "attribute ex"},
		{"poll out of range", "po", number("9223372036854775807"), "attribute po is 9223372036854775807, out of range"},
		{"owner cut", "ow", binary(make([]byte, 31)), "attribute ow has 31 bytes, not 32"},
		{"owner that is a text", "ow", text("me"), "attribute ow"},
		{"questions that are a text", "ak", text("agree"), "attribute ak"},
		{"a question that is a text", "ak", list("agree"), "attribute ak"},
		{"a question's digest cut", "ak", element(item{"k": text("a"), "g": binary([]byte{1})}), "attribute ak has at 0 what has 1 bytes, not 16"},
		{"a question's data a text", "ak", element(item{"k": text("a"), "i": text("b")}), "attribute ak has at 0"},
		{"an outcome that is a text", "oc", text("done"), "attribute oc"},
		{"an outcome's epoch a text", "oc", &types.AttributeValueMemberM{Value: item{"e": text("1")}}, "attribute oc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := golden(t, "head-1.json")
			i[c.attribute] = c.value
			h, err := decodeHead(i)
			if !errors.Is(err, task.ErrCorrupt) || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(h, task.Head{}) {
				t.Errorf("%+v, %v; want ErrCorrupt with %q", h, err, c.want)
			}
		})
	}
}

func TestNoReservedWord(t *testing.T) {
	f, err := os.Open("testdata/reserved-words.txt") // as AWS documents them
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reserved := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		reserved[lines.Text()] = true
	}
	if len(reserved) != 573 || !reserved["TO"] {
		t.Fatalf("%d words are reserved, want 573", len(reserved))
	}
	ofHeads := append([]string{partitionKey, sortKey, attrBegun, attrBegunWith, attrCalled, attrWrites}, headAttributes...)
	if slices.Sort(ofHeads); len(slices.Compact(slices.Clone(ofHeads))) != len(ofHeads) {
		t.Errorf("an attribute of the head has two meanings: %q", ofHeads)
	}
	for _, name := range append(ofHeads, attrEpoch, attrData, attrLength, attrRest, useRound, useWrite, useAnswers, useDeadline, useDone, useReleased, useResponse) {
		if reserved[strings.ToUpper(name)] {
			t.Errorf("%s is a reserved word", name)
		}
	}
}

// A head that is worked on costs one write unit, and every one a read unit.
func TestHeadBudget(t *testing.T) {
	fresh := func() task.Head {
		h := fullHead()
		h.Message, h.Worker, h.LeaseUntil, h.Asked, h.Outcome = "", "", time.Time{}, nil, nil
		h.Epoch, h.Claims, h.Interrupted, h.Sends, h.Journal = 0, 0, 0, 0, 0
		return h
	}
	for _, c := range []struct {
		name    string
		edit    func(*task.Head)
		answers int // of separate updates
		most    int
	}{
		{"fresh", func(*task.Head) {}, 0, 320},
		{"worked on, with all it may have", func(h *task.Head) {
			*h = fullHead()
			h.Asked, h.Outcome = nil, nil
			h.Tool, h.Message = strings.Repeat("t", 64), strings.Repeat("m", 512)
			h.Epoch, h.Claims, h.Journal, h.Revision = math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32
		}, 0, 1024},
		{"worked on after many answers", func(h *task.Head) {
			*h = fullHead()
			h.Asked, h.Outcome = nil, nil
		}, 50, 1024},
		{"waiting for input", func(h *task.Head) {
			*h = fullHead()
			h.Outcome, h.Message = nil, strings.Repeat("m", 512)
			h.Asked = []task.Asked{{Key: strings.Repeat("k", 64), Digest: [16]byte{1}, Inline: make([]byte, 2048)}, {Key: "b", Epoch: 3, Digest: [16]byte{1}}}
		}, 50, 4096},
		{"ended", func(h *task.Head) {
			*h = fullHead()
			h.Asked, h.Message, h.Outcome = nil, strings.Repeat("m", 512), &task.OutcomeRef{Epoch: 3, Inline: make([]byte, 2048)}
		}, 50, 4096},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := fresh()
			c.edit(&h)
			i := encodeHead(&h)
			maps.Copy(i, headKey(h.ID))
			write := newWrite()
			i[attrBegun], i[attrCalled], i[attrBegunWith] = text(write), text(write), number(9)
			if c.answers > 0 {
				i[attrWrites] = list(slices.Repeat([]string{write}, c.answers)...)
			}
			if n := size(i); n > c.most {
				t.Errorf("%d bytes, want at most %d", n, c.most)
			} else {
				t.Logf("%d bytes", n)
			}
		})
	}
}

func FuzzHead(f *testing.F) {
	f.Add(testID, "tool", "message", []byte("inline"), int64(1785240000123), uint64(7), uint32(3), true)
	f.Add("a", "", "", []byte{}, int64(0), uint64(0), uint32(0), false)
	f.Add("a", "\x00", "é", []byte{0xff}, int64(-1), uint64(math.MaxUint64), uint32(math.MaxUint32), true)
	f.Fuzz(func(t *testing.T, id, tool, message string, inline []byte, milli int64, big uint64, small uint32, full bool) {
		at := time.UnixMilli(milli % (400_000 * 24 * 3600 * 1000)).Add(time.Duration(small % 1_000_000)) // years that time.Time has
		h := task.Head{ID: id, Tool: tool, Message: message, Created: at, Expires: at.Add(time.Duration(small)), Version: big, Epoch: small, Phase: task.Phase(small)}
		if full {
			h.Wake, h.LeaseUntil, h.Poll = at, at.Add(1), time.Duration(milli)
			h.Asked = []task.Asked{{Key: tool, Epoch: small, Inline: inline}, {Key: message}}
			h.Outcome = &task.OutcomeRef{Epoch: small, Inline: inline}
			copy(h.Owner[:], inline)
		}
		if task.CheckWrite(h, nil) != nil {
			return
		}
		h = h.Kept()
		i := encodeHead(&h)
		maps.Copy(i, headKey(h.ID))
		got, err := decodeHead(i)
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Fatalf("%+v came back as %+v, %v", h, got, err)
		}
	})
}

// FuzzDecodeHead has a head with one attribute that is anything.
func FuzzDecodeHead(f *testing.F) {
	for kind := range uint8(6) {
		for n := range headAttributes {
			f.Add(uint8(n), kind, "1", []byte{1})
		}
	}
	f.Fuzz(func(t *testing.T, n, kind uint8, s string, b []byte) {
		values := []types.AttributeValue{
			text(s), &types.AttributeValueMemberN{Value: s}, binary(b), list(s),
			&types.AttributeValueMemberM{Value: item{attrKey: text(s), attrEpoch: &types.AttributeValueMemberN{Value: s}, attrInline: binary(b), attrDigest: binary(b)}},
			&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: item{attrKey: text(s), attrDigest: binary(b)}}}},
		}
		h := fullHead()
		i := encodeHead(&h)
		maps.Copy(i, headKey(h.ID))
		i[headAttributes[int(n)%len(headAttributes)]] = values[int(kind)%len(values)]
		first, err := decodeHead(i)
		if err != nil {
			return
		}
		i = encodeHead(&first)
		maps.Copy(i, headKey(first.ID))
		if again, err := decodeHead(i); err != nil || !reflect.DeepEqual(again, first) {
			t.Fatalf("%+v came back as %+v, %v", first, again, err)
		}
	})
}
