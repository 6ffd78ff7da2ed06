package sqs

import (
	"errors"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/cloud"
	"github.com/thaw-mcp/thaw/e2e/internal/ministack"
	"github.com/thaw-mcp/thaw/e2e/internal/queue"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/sqsdispatch"
)

func dispatcher(t *testing.T, s *cloud.Server, url string) *sqsdispatch.Dispatcher {
	t.Helper()
	d, err := sqsdispatch.New(s.Config(), url)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What is sent is received, and not before its delay.
func TestMessages(t *testing.T) {
	s := ministack.Start(t)
	q := queue.New(t, s.Config(), nil, 0)
	d := dispatcher(t, s, q.URL)
	if err := d.Dispatch(t.Context(), "at-once", 0); err != nil {
		t.Fatal(err)
	}
	m, err := task.ParseMessage(*q.Must(t, 1, 0)[0].Body)
	if err != nil || m != (task.Message{ID: "at-once"}) {
		t.Errorf("%+v, %v", m, err)
	}

	sent := time.Now()
	if err := d.Dispatch(t.Context(), "later", 1500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	q.Must(t, 0, 0)
	m, err = task.ParseMessage(*q.Must(t, 1, 10)[0].Body)
	if waited := time.Since(sent); err != nil || m.ID != "later" || waited < 1500*time.Millisecond {
		t.Errorf("%+v, %v after %v", m, err, waited)
	}
}

// A queue that is not there will not be there the next time (tasks rule 7); a service that
// cannot be reached may be.
func TestNoQueue(t *testing.T) {
	s := ministack.Start(t)
	q := queue.New(t, s.Config(), nil, 0)
	if err := dispatcher(t, s, q.URL+"-gone").Dispatch(t.Context(), "id", 0); !errors.Is(err, task.ErrUndeliverable) {
		t.Errorf("no such queue: %v", err)
	}
	cfg := s.Config()
	nobody := "http://127.0.0.1:1"
	cfg.BaseEndpoint = &nobody
	d, err := sqsdispatch.New(cfg, q.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Dispatch(t.Context(), "id", 0); err == nil || errors.Is(err, task.ErrUndeliverable) {
		t.Errorf("nobody listens: %v", err)
	}
}

// A message that was received is hidden for as long as its worker says, and goes to the dead
// letters when it was received often enough.
func TestVisibilityAndRedrive(t *testing.T) {
	s := ministack.Start(t)
	dead := queue.New(t, s.Config(), nil, 0)
	q := queue.New(t, s.Config(), dead, 3)
	if err := dispatcher(t, s, q.URL).Dispatch(t.Context(), "id", 0); err != nil {
		t.Fatal(err)
	}
	v := sqsdispatch.NewVisibility(s.Config())
	change := func(receipt string, d time.Duration) {
		t.Helper()
		if err := v.Change(t.Context(), q.ARN, receipt, d); err != nil {
			t.Fatal(err)
		}
	}
	receipt := *q.Must(t, 1, 0)[0].ReceiptHandle
	q.Must(t, 0, 0)
	change(receipt, 0)
	receipt = *q.Must(t, 1, 0)[0].ReceiptHandle
	change(receipt, time.Second)
	q.Must(t, 0, 0)
	began := time.Now()
	receipt = *q.Must(t, 1, 10)[0].ReceiptHandle
	if waited := time.Since(began); waited > 5*time.Second {
		t.Errorf("hidden for a second, shown after %v", waited)
	}
	change(receipt, 0)
	q.Must(t, 0, 0) // the fourth time it is moved
	if m, err := task.ParseMessage(*dead.Must(t, 1, 5)[0].Body); err != nil || m.ID != "id" {
		t.Errorf("%+v, %v", m, err)
	}
	if err := v.Change(t.Context(), q.ARN+"-gone", receipt, 0); err == nil {
		t.Error("a queue that is not there was changed")
	}
}
