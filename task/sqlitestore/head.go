package sqlitestore

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// column is one of a head's that a write sets.
type column struct {
	name  string
	field func(h *task.Head) any // for both directions: a pointer, or what converts one
}

var columns = []column{
	{"tool", func(h *task.Head) any { return &h.Tool }},
	{"traceparent", func(h *task.Head) any { return &h.Traceparent }},
	{"format", func(h *task.Head) any { return &h.Format }},
	{"revision", func(h *task.Head) any { return &h.Revision }},
	{"status", func(h *task.Head) any { return &h.Status }},
	{"phase", func(h *task.Head) any { return &h.Phase }},
	{"owner", func(h *task.Head) any { return fixed{h.Owner[:]} }},
	{"created", func(h *task.Head) any { return moment{&h.Created} }},
	{"updated", func(h *task.Head) any { return moment{&h.Updated} }},
	{"expires", func(h *task.Head) any { return moment{&h.Expires} }},
	{"poll", func(h *task.Head) any { return millis{&h.Poll} }},
	{"message", func(h *task.Head) any { return &h.Message }},
	{"epoch", func(h *task.Head) any { return &h.Epoch }},
	{"claims", func(h *task.Head) any { return &h.Claims }},
	{"worker", func(h *task.Head) any { return &h.Worker }},
	{"lease_until", func(h *task.Head) any { return moment{&h.LeaseUntil} }},
	{"interrupted", func(h *task.Head) any { return &h.Interrupted }},
	{"sends", func(h *task.Head) any { return &h.Sends }},
	{"sent", func(h *task.Head) any { return moment{&h.Sent} }},
	{"wake", func(h *task.Head) any { return moment{&h.Wake} }},
	{"journal", func(h *task.Head) any { return &h.Journal }},
	{"asked", func(h *task.Head) any { return questions{&h.Asked} }},
	{"outcome", func(h *task.Head) any { return outcome{&h.Outcome} }},
}

// fields are those of h in the order of columns.
func fields(h *task.Head) []any {
	all := make([]any, len(columns), len(columns)+4)
	for i, c := range columns {
		all[i] = c.field(h)
	}
	return all
}

// columnNames lists the columns, each followed by after.
func columnNames(after string) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name + after
	}
	return strings.Join(names, ", ")
}

// fixed is bytes of a length that does not change.
type fixed struct{ bytes []byte }

// Value implements driver.Valuer.
func (f fixed) Value() (driver.Value, error) { return f.bytes, nil }

// Scan implements sql.Scanner.
func (f fixed) Scan(v any) error {
	b, ok := v.([]byte)
	if !ok || len(b) != len(f.bytes) {
		return fmt.Errorf("%T in place of %d bytes", v, len(f.bytes))
	}
	copy(f.bytes, b)
	return nil
}

// moment is a time in Unix milliseconds, NULL if it is zero.
type moment struct{ at *time.Time }

// Value implements driver.Valuer.
func (m moment) Value() (driver.Value, error) {
	if m.at.IsZero() {
		return nil, nil
	}
	return m.at.UnixMilli(), nil
}

// Scan implements sql.Scanner.
func (m moment) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m.at = time.Time{}
	case int64:
		*m.at = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("%T in place of a time", v)
	}
	return nil
}

// millis is a duration in milliseconds.
type millis struct{ d *time.Duration }

// Value implements driver.Valuer.
func (m millis) Value() (driver.Value, error) { return m.d.Milliseconds(), nil }

// Scan implements sql.Scanner.
func (m millis) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T in place of a duration", v)
	}
	*m.d = time.Duration(n) * time.Millisecond
	return nil
}

// questions is the outstanding questions as JSON, NULL if there are none.
type questions struct{ asked *[]task.Asked }

type question struct {
	Key    string `json:"key"`
	Epoch  uint32 `json:"epoch"`
	Digest []byte `json:"digest"`
	Inline []byte `json:"inline"` // null: in a part
}

// Value implements driver.Valuer.
func (q questions) Value() (driver.Value, error) {
	if len(*q.asked) == 0 {
		return nil, nil
	}
	all := make([]question, len(*q.asked))
	for i, a := range *q.asked {
		all[i] = question{a.Key, a.Epoch, a.Digest[:], a.Inline}
	}
	return text(all)
}

// Scan implements sql.Scanner.
func (q questions) Scan(v any) error {
	var all []question
	*q.asked = nil
	if err := parse(v, &all); err != nil || len(all) == 0 {
		return err
	}
	*q.asked = make([]task.Asked, len(all))
	for i, a := range all {
		(*q.asked)[i] = task.Asked{Key: a.Key, Epoch: a.Epoch, Inline: a.Inline}
		copy((*q.asked)[i].Digest[:], a.Digest)
	}
	return nil
}

// outcome is how a task ended as JSON, NULL if it has not.
type outcome struct{ ref **task.OutcomeRef }

type ending struct {
	Epoch  uint32 `json:"epoch"`
	Inline []byte `json:"inline"` // null: in a part
}

// Value implements driver.Valuer.
func (o outcome) Value() (driver.Value, error) {
	if *o.ref == nil {
		return nil, nil
	}
	return text(ending(**o.ref))
}

// Scan implements sql.Scanner.
func (o outcome) Scan(v any) error {
	var e *ending
	if err := parse(v, &e); err != nil {
		return err
	}
	*o.ref = (*task.OutcomeRef)(e)
	return nil
}

func text(v any) (driver.Value, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// parse leaves v alone if the column is NULL.
func parse(column, v any) error {
	switch column := column.(type) {
	case nil:
		return nil
	case string:
		return json.Unmarshal([]byte(column), v)
	default:
		return fmt.Errorf("%T in place of JSON", column)
	}
}
