package storetest

import (
	"bytes"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// newHead is a task as it begins: it lives for a day and is to be claimed.
func newHead(id string) task.Head {
	return task.Head{
		ID: id, Tool: "tool", Format: 1, Version: 1, Status: task.Working, Phase: task.Ready, Owner: [32]byte{1, 2, 3},
		Created: now(), Updated: now(), Expires: now().Add(24 * time.Hour), Poll: time.Second, Wake: now().Add(30 * time.Second),
	}
}

// fullHead has something in every field, at the ends of their ranges.
func fullHead(id string) task.Head {
	at := now().Add(time.Hour)
	h := task.Head{
		ID: id, Tool: "tool \x00é😀\"\\\n", Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Format: 1<<16 - 1, Revision: 1<<32 - 1, Version: 1, Status: task.InputRequired, Phase: task.Done,
		Created: at.Add(-3 * time.Hour), Updated: at.Add(-2 * time.Hour), Expires: at, Poll: 1500 * time.Millisecond, Message: "message \x00é😀",
		Epoch: 1<<32 - 1, Claims: 1<<32 - 2, Worker: "worker", LeaseUntil: at.Add(1), Interrupted: 255, Sends: 254, Sent: at.Add(2 * time.Second),
		Wake: at.Add(3 * time.Second), Journal: 1<<32 - 3,
		Asked:   []task.Asked{{Key: "a", Epoch: 1<<32 - 1, Digest: [16]byte{15: 0xff}}, {Key: "b~2 \x00é", Inline: []byte{0, 0xff}}, {Key: "c", Inline: []byte{}}},
		Outcome: &task.OutcomeRef{Epoch: 1<<32 - 1, Inline: []byte(`{"result":"é"}`)},
	}
	for i := range h.Owner {
		h.Owner[i] = byte(255 - i)
	}
	return h
}

// createTask creates h and gives it back as it is now.
func createTask(tb testing.TB, s task.Store, h task.Head, parts ...task.Part) task.Head {
	tb.Helper()
	if err := s.Create(tb.Context(), h, parts...); err != nil {
		tb.Fatalf("create: %v", err)
	}
	h.Version = 1
	return h
}

// commitNext commits what edit makes of h and gives it back.
func commitNext(tb testing.TB, s task.Store, h task.Head, edit func(*task.Head), parts ...task.Part) task.Head {
	tb.Helper()
	h.Version++
	edit(&h)
	if err := s.Commit(tb.Context(), now(), h, parts...); err != nil {
		tb.Fatalf("commit of version %d: %v", h.Version, err)
	}
	return h
}

func unchanged(*task.Head) {}

// journal is an edit that commits n entries in all.
func journal(n uint32) func(*task.Head) { return func(h *task.Head) { h.Journal = n } }

// isThere wants the head of want's id to be want.
func isThere(tb testing.TB, s task.Store, want task.Head) {
	tb.Helper()
	got, err := s.Head(tb.Context(), want.ID)
	if err != nil {
		tb.Fatalf("head: %v", err)
	}
	if !reflect.DeepEqual(got, want.Kept()) {
		tb.Fatalf("the head is not as it should be:%s", differences(got, want.Kept()))
	}
}

// differences lists the fields in which two heads differ.
func differences(got, want task.Head) string {
	var b strings.Builder
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if g, w := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(g, w) {
			fmt.Fprintf(&b, "\n%s: %.100q, want %.100q", reflect.TypeFor[task.Head]().Field(i).Name, fmt.Sprintf("%+v", g), fmt.Sprintf("%+v", w))
		}
	}
	return b.String()
}

// isNotThere wants no head of id.
func isNotThere(tb testing.TB, s task.Store, id string) {
	tb.Helper()
	if h, err := s.Head(tb.Context(), id); !errors.Is(err, task.ErrNotFound) || !reflect.DeepEqual(h, task.Head{}) {
		tb.Fatalf("head at version %d, %v; want ErrNotFound", h.Version, err)
	}
}

// conflicts commits next and wants to be told of present.
func conflicts(tb testing.TB, s task.Store, next, present task.Head, parts ...task.Part) {
	tb.Helper()
	err := s.Commit(tb.Context(), now(), next, parts...)
	var conflict *task.Conflict
	if !errors.As(err, &conflict) {
		tb.Fatalf("commit of version %d on %d: %v, want a conflict", next.Version, present.Version, err)
	}
	if !reflect.DeepEqual(conflict.Now, present.Kept()) {
		tb.Fatalf("the conflict carries another head:%s", differences(conflict.Now, present.Kept()))
	}
}

// partsAre reads parts and wants these.
func partsAre(tb testing.TB, s task.Store, id string, k task.Kind, name string, from, to uint32, want ...task.Part) {
	tb.Helper()
	got, err := s.Parts(tb.Context(), id, k, name, from, to)
	if err != nil {
		tb.Fatalf("parts of kind %d: %v", k, err)
	}
	if len(got) != len(want) {
		tb.Fatalf("%d parts of kind %d, want %d", len(got), k, len(want))
	}
	for i, g := range got {
		w := want[i]
		if g.Kind != w.Kind || g.Name != w.Name || g.Epoch != w.Epoch || g.Seq != w.Seq || !bytes.Equal(g.Data, w.Data) {
			tb.Fatalf("part %d is %s, want %s", i, showPart(g), showPart(w))
		}
	}
}

func showPart(p task.Part) string {
	return fmt.Sprintf("{kind %d, name %q, epoch %d, seq %d, %d bytes %.8x}", p.Kind, p.Name, p.Epoch, p.Seq, len(p.Data), p.Data)
}

// partsFail reads parts and wants one of these errors, and no parts.
func partsFail(tb testing.TB, s task.Store, id string, k task.Kind, name string, from, to uint32, want ...error) {
	tb.Helper()
	got, err := s.Parts(tb.Context(), id, k, name, from, to)
	for _, w := range want {
		if errors.Is(err, w) && len(got) == 0 {
			return
		}
	}
	tb.Fatalf("%d parts of kind %d, %v; want %v", len(got), k, err, want)
}

func callPart(data []byte) task.Part { return task.Part{Kind: task.PartCall, Data: data} }

func entryPart(epoch, seq uint32, data []byte) task.Part {
	return task.Part{Kind: task.PartEntry, Epoch: epoch, Seq: seq, Data: data}
}

func questionPart(epoch uint32, name string, data []byte) task.Part {
	return task.Part{Kind: task.PartQuestion, Epoch: epoch, Name: name, Data: data}
}

func answerPart(name string, data []byte) task.Part {
	return task.Part{Kind: task.PartAnswer, Name: name, Data: data}
}

func outcomePart(epoch uint32, data []byte) task.Part {
	return task.Part{Kind: task.PartOutcome, Epoch: epoch, Data: data}
}

// noise is n bytes, others for each seed.
func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	mathrand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}
