package task

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

const (
	// MaxName is the longest name of a part, in bytes. A sort key of DynamoDB ends at 1,024.
	MaxName = 900

	// maxID leaves room for every way to make one that cannot be guessed.
	maxID = 128
)

// CheckID says what is wrong with id as that of a task. Head begins with it. The error is
// ErrNotFound too, since no task has such an id, and does not show it: an id may be all that
// protects a task (T-46).
func CheckID(id string) error {
	if err := wrongID(id); err != nil {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return nil
}

func wrongID(id string) error {
	if len(id) == 0 || len(id) > maxID {
		return fmt.Errorf("the id has %d characters; allowed are 1 to %d", len(id), maxID)
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("the id has byte 0x%02x at %d; allowed are A-Z a-z 0-9 - and _", c, i)
		}
	}
	return nil
}

// CheckWrite says what is wrong with a head and parts to be stored. Create and Commit begin
// with it. The error names the field and what is allowed; what is in it is not shown.
func CheckWrite(h Head, parts []Part) error {
	if err := wrongID(h.ID); err != nil {
		return fmt.Errorf("task: Head.ID: %w", err)
	}
	for _, field := range []struct{ name, value string }{
		{"Tool", h.Tool}, {"Traceparent", h.Traceparent}, {"Status", string(h.Status)},
		{"Message", h.Message}, {"Worker", h.Worker},
	} {
		if !utf8.ValidString(field.value) {
			return fmt.Errorf("task: Head.%s is not UTF-8", field.name)
		}
	}
	for i := range h.Asked {
		if !utf8.ValidString(h.Asked[i].Key) {
			return fmt.Errorf("task: Head.Asked[%d].Key is not UTF-8", i)
		}
	}
	for i := range parts {
		if err := parts[i].check(); err != nil {
			return fmt.Errorf("task: part %d of %d: %w", i+1, len(parts), err)
		}
	}
	return nil
}

// check looks at names too: without one, or with one too many, two parts would be one.
func (p *Part) check() error {
	named := p.Kind == PartQuestion || p.Kind == PartAnswer
	switch {
	case p.Kind > PartOutcome:
		return wrongKind(p.Kind)
	case named && (len(p.Name) == 0 || len(p.Name) > MaxName):
		return fmt.Errorf("its name has %d bytes; allowed are 1 to %d", len(p.Name), MaxName)
	case named && !utf8.ValidString(p.Name):
		return errors.New("its name is not UTF-8")
	case !named && p.Name != "":
		return fmt.Errorf("kind %d has no name; only questions and answers have", p.Kind)
	case p.Kind != PartEntry && p.Seq != 0:
		return fmt.Errorf("kind %d has no number; only entries have", p.Kind)
	}
	return nil
}

// CheckParts says what is wrong with a question for parts. Parts begins with it.
func CheckParts(id string, k Kind) error {
	if k > PartOutcome {
		return fmt.Errorf("task: %w", wrongKind(k))
	}
	return CheckID(id)
}

func wrongKind(k Kind) error {
	return fmt.Errorf("there is no kind %d; allowed are 0 to %d", k, PartOutcome)
}

// CheckDue says what is wrong with a question for due tasks. Due begins with it.
func CheckDue(shard, limit int) error {
	switch {
	case shard < 0 || shard >= Shards:
		return fmt.Errorf("task: there is no shard %d; allowed are 0 to %d", shard, Shards-1)
	case limit < 1:
		return fmt.Errorf("task: the limit is %d; allowed is 1 or more", limit)
	}
	return nil
}
