package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// points are the places at which the process may be told to die.
type points struct {
	file   *os.File
	deadly string
}

func openPoints(log, deadly string) (*points, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return &points{file, deadly}, err
}

// log appends a line, whole even if the process is killed right after.
func (p *points) log(words ...string) {
	_, _ = p.file.WriteString(strings.Join(words, "\t") + "\n") // a missing line fails the test
}

// at ends the process if this is the point.
func (p *points) at(point string) {
	if point == p.deadly {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// around runs a write between the points before and after it; a write that failed is none.
func (p *points) around(what string, write func() error) error {
	p.at("before " + what)
	err := write()
	if err == nil {
		p.at("after " + what)
	}
	return err
}

// store is a store whose writes are points.
type store struct {
	task.Store
	*points
	mu     sync.Mutex
	epochs map[string]uint32
}

// Due implements task.Sweeper.
func (s *store) Due(ctx context.Context, before time.Time, shard, limit int) ([]string, error) {
	return s.Store.(task.Sweeper).Due(ctx, before, shard, limit)
}

// Close implements io.Closer.
func (s *store) Close() error { return s.Store.(io.Closer).Close() }

// Create implements task.Store.
func (s *store) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	s.log("create", h.ID)
	return s.around("create", func() error { return s.Store.Create(ctx, h, parts...) })
}

// Commit implements task.Store.
func (s *store) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	what := s.name(&next, parts)
	return s.around(what, func() error {
		err := s.Store.Commit(ctx, now, next, parts...)
		if err == nil && what == "outcome" {
			s.log("outcome", next.ID, string(next.Status))
		}
		return err
	})
}

// name is what a write of a head does.
func (s *store) name(next *task.Head, parts []task.Part) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	claimed := next.Phase == task.Running && next.Epoch > s.epochs[next.ID]
	s.epochs[next.ID] = next.Epoch
	switch {
	case claimed:
		return "claim"
	case next.Outcome != nil:
		return "outcome"
	case len(parts) > 0 && parts[0].Kind == task.PartAnswer:
		return "update"
	case next.Phase == task.Asking:
		return "question"
	case next.Phase == task.Sleeping:
		return "sleep"
	case len(parts) > 0:
		return "record"
	}
	return "heartbeat"
}

// writer is a response whose sending is a point.
type writer struct {
	http.ResponseWriter
	points *points
}

func (w *writer) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`"resultType":"task"`)) {
		w.points.at("after dispatch")
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
