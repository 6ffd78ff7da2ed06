package dynamostore

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/thaw-mcp/thaw/task"
)

// The attributes of a head that are no field of task.Head.
const (
	attrBegun     = "b"  // the write that created it
	attrBegunWith = "bn" // how many entries that put
	attrCalled    = "c"  // the write that put its call
	attrWrites    = "w"  // the writes that put answers, in order
	attrExpiry    = "ex"
	attrTTL       = timeToLive
	attrShard     = indexShard
)

// never is the expiry of a task that does not expire, so that one condition fits all.
const never = math.MaxInt64

// field is an attribute that a field of task.Head is kept in. An attribute that is missing
// is the field's zero value.
type field struct {
	name  string
	write func(*task.Head) types.AttributeValue // nil: the zero value
	read  func(*task.Head, types.AttributeValue) error
}

// fields are kept as long as tables are: a name never gets another meaning. None is a reserved
// word of DynamoDB.
var fields = []field{
	textField("tl", func(h *task.Head) *string { return &h.Tool }),
	textField("tp", func(h *task.Head) *string { return &h.Traceparent }),
	numberField("fm", func(h *task.Head) *uint16 { return &h.Format }),
	numberField("rv", func(h *task.Head) *uint32 { return &h.Revision }),
	numberField("v", func(h *task.Head) *uint64 { return &h.Version }),
	textField("st", func(h *task.Head) *task.Status { return &h.Status }),
	numberField("ph", func(h *task.Head) *task.Phase { return &h.Phase }),
	{"ow", writeOwner, readOwner},
	timeField("cr", func(h *task.Head) *time.Time { return &h.Created }),
	timeField("up", func(h *task.Head) *time.Time { return &h.Updated }),
	{attrExpiry, writeExpiry, readExpiry},
	{"po", writePoll, readPoll},
	textField("me", func(h *task.Head) *string { return &h.Message }),
	numberField("ep", func(h *task.Head) *uint32 { return &h.Epoch }),
	numberField("cl", func(h *task.Head) *uint32 { return &h.Claims }),
	textField("wk", func(h *task.Head) *string { return &h.Worker }),
	timeField("le", func(h *task.Head) *time.Time { return &h.LeaseUntil }),
	numberField("ir", func(h *task.Head) *uint8 { return &h.Interrupted }),
	numberField("sn", func(h *task.Head) *uint8 { return &h.Sends }),
	timeField("se", func(h *task.Head) *time.Time { return &h.Sent }),
	timeField(indexWake, func(h *task.Head) *time.Time { return &h.Wake }),
	numberField("jn", func(h *task.Head) *uint32 { return &h.Journal }),
	{"ak", writeAsked, readAsked},
	{"oc", writeOutcome, readOutcome},
}

// encodeHead is h in attributes, without its key and without what names writes.
func encodeHead(h *task.Head) item {
	i := make(item, len(fields)+2)
	for _, f := range fields {
		if a := f.write(h); a != nil {
			i[f.name] = a
		}
	}
	if !h.Expires.IsZero() {
		i[attrTTL] = inSeconds(h.Expires)
	}
	if !h.Wake.IsZero() {
		i[attrShard] = shardOf(h.ID)
	}
	return i
}

// decodeHead is the head in an item of the table.
func decodeHead(i item) (task.Head, error) {
	p, err := readText(i[partitionKey])
	id, ok := strings.CutPrefix(p, taskPrefix)
	if err != nil || !ok {
		return task.Head{}, fmt.Errorf("dynamostore: %w: the head's partition key names no task", task.ErrCorrupt)
	}
	h := task.Head{ID: id}
	for _, f := range fields {
		if err := f.read(&h, i[f.name]); err != nil {
			return task.Head{}, wrongAttribute(f.name, err)
		}
	}
	return h, nil
}

func textField[T ~string](name string, of func(*task.Head) *T) field {
	return field{name,
		func(h *task.Head) types.AttributeValue {
			if *of(h) == "" {
				return nil
			}
			return text(string(*of(h)))
		},
		func(h *task.Head, a types.AttributeValue) error {
			s, err := readText(a)
			*of(h) = T(s)
			return err
		}}
}

func numberField[T ~uint8 | ~uint16 | ~uint32 | ~uint64](name string, of func(*task.Head) *T) field {
	return field{name,
		func(h *task.Head) types.AttributeValue {
			if *of(h) == 0 {
				return nil
			}
			return number(*of(h))
		},
		func(h *task.Head, a types.AttributeValue) (err error) {
			*of(h), err = readNumber[T](a)
			return err
		}}
}

func timeField(name string, of func(*task.Head) *time.Time) field {
	return field{name,
		func(h *task.Head) types.AttributeValue {
			if of(h).IsZero() {
				return nil
			}
			return number(of(h).UnixMilli())
		},
		func(h *task.Head, a types.AttributeValue) (err error) {
			*of(h), err = readTime(a)
			return err
		}}
}

func writeOwner(h *task.Head) types.AttributeValue {
	if h.Owner == [32]byte{} {
		return nil
	}
	return binary(h.Owner[:])
}

func readOwner(h *task.Head, a types.AttributeValue) error { return readInto(h.Owner[:], a) }

// readInto reads binary of exactly len(to) bytes.
func readInto(to []byte, a types.AttributeValue) error {
	b, err := readBytes(a)
	if a == nil || err != nil {
		return err
	}
	if len(b) != len(to) {
		return fmt.Errorf("has %d bytes, not %d", len(b), len(to))
	}
	copy(to, b)
	return nil
}

func writeExpiry(h *task.Head) types.AttributeValue {
	if h.Expires.IsZero() {
		return number(int64(never))
	}
	return number(h.Expires.UnixMilli())
}

func readExpiry(h *task.Head, a types.AttributeValue) error {
	n, err := readInteger(a)
	if err != nil || n == never {
		return err
	}
	h.Expires, err = readTime(a)
	return err
}

func writePoll(h *task.Head) types.AttributeValue {
	if h.Poll == 0 {
		return nil
	}
	return number(h.Poll.Milliseconds())
}

func readPoll(h *task.Head, a types.AttributeValue) error {
	n, err := readInteger(a)
	if err == nil && (n > math.MaxInt64/int64(time.Millisecond) || n < math.MinInt64/int64(time.Millisecond)) {
		return fmt.Errorf("is %d, out of range", n)
	}
	h.Poll = time.Duration(n) * time.Millisecond
	return err
}

// The attributes of a question and of an outcome in the head.
const (
	attrKey    = "k"
	attrEpoch  = "e"
	attrDigest = "g"
	attrInline = "i"
)

func writeAsked(h *task.Head) types.AttributeValue {
	if len(h.Asked) == 0 {
		return nil
	}
	list := make([]types.AttributeValue, len(h.Asked))
	for n, asked := range h.Asked {
		m := item{attrKey: text(asked.Key), attrEpoch: number(asked.Epoch)}
		if asked.Digest != [16]byte{} {
			m[attrDigest] = binary(asked.Digest[:])
		}
		if asked.Inline != nil {
			m[attrInline] = binary(asked.Inline)
		}
		list[n] = &types.AttributeValueMemberM{Value: m}
	}
	return &types.AttributeValueMemberL{Value: list}
}

func readAsked(h *task.Head, a types.AttributeValue) error {
	if a == nil {
		return nil
	}
	list, ok := a.(*types.AttributeValueMemberL)
	if !ok {
		return fmt.Errorf("is a %T, not a list", a)
	}
	for n, element := range list.Value {
		m, ok := element.(*types.AttributeValueMemberM)
		if !ok {
			return fmt.Errorf("has a %T at %d, not a map", element, n)
		}
		var asked task.Asked
		var err error
		if asked.Key, err = readText(m.Value[attrKey]); err == nil {
			if err = readInto(asked.Digest[:], m.Value[attrDigest]); err == nil {
				asked.Epoch, asked.Inline, err = readReference(m.Value)
			}
		}
		if err != nil {
			return fmt.Errorf("has at %d what %w", n, err)
		}
		h.Asked = append(h.Asked, asked)
	}
	return nil
}

func writeOutcome(h *task.Head) types.AttributeValue {
	if h.Outcome == nil {
		return nil
	}
	m := item{attrEpoch: number(h.Outcome.Epoch)}
	if h.Outcome.Inline != nil {
		m[attrInline] = binary(h.Outcome.Inline)
	}
	return &types.AttributeValueMemberM{Value: m}
}

func readOutcome(h *task.Head, a types.AttributeValue) (err error) {
	if a == nil {
		return nil
	}
	m, ok := a.(*types.AttributeValueMemberM)
	if !ok {
		return fmt.Errorf("is a %T, not a map", a)
	}
	h.Outcome = &task.OutcomeRef{}
	h.Outcome.Epoch, h.Outcome.Inline, err = readReference(m.Value)
	return err
}

// readReference reads where a question or an outcome is: in a part of an epoch, or here.
func readReference(m item) (epoch uint32, inline []byte, err error) {
	if epoch, err = readNumber[uint32](m[attrEpoch]); err == nil {
		inline, err = readBytes(m[attrInline])
	}
	return epoch, inline, err
}
