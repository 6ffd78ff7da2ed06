package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
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

// log appends a line about a task, with the time and this process in front; it is whole even if
// the process is killed right after.
func (p *points) log(what, id string, more ...string) {
	words := append([]string{time.Now().Format(time.RFC3339Nano), strconv.Itoa(os.Getpid()), what, id}, more...)
	_, _ = p.file.WriteString(strings.Join(words, "\t") + "\n") // a missing line fails the test
}

// at ends the process if this is the point.
func (p *points) at(point, id string) {
	if point == p.deadly {
		p.log("killed", id)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// around runs a write between the points before and after it; a write that failed is none.
func (p *points) around(what, id string, write func() error) error {
	p.at("before "+what, id)
	err := write()
	if err == nil {
		p.log(what, id)
		p.at("after "+what, id)
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
func (s *store) Close() error {
	if c, ok := s.Store.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Create implements task.Store.
func (s *store) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	s.log("called", h.ID)
	return s.around("create", h.ID, func() error { return s.Store.Create(ctx, h, parts...) })
}

// Commit implements task.Store.
func (s *store) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	return s.around(s.name(&next, parts), next.ID, func() error { return s.Store.Commit(ctx, now, next, parts...) })
}

// name is what a write of a head does.
func (s *store) name(next *task.Head, parts []task.Part) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	claimed := next.Phase == task.Running && next.Epoch > s.epochs[next.ID] && next.Sends == 0 // else it is healed
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
	return "upkeep" // a lease that is renewed, or a message that is sent again
}

// writer is a response whose sending is a point.
type writer struct {
	http.ResponseWriter
	points *points
}

var created = regexp.MustCompile(`"resultType":"task","taskId":"([^"]+)"`)

func (w *writer) Write(b []byte) (int, error) {
	if m := created.FindSubmatch(b); m != nil {
		w.points.at("after dispatch", string(m[1]))
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
