//go:build unix

package sqlitestore_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

func TestTooLarge(t *testing.T) {
	huge, err := syscall.Mmap(-1, 0, 500_000_001, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE) // takes no memory unless it is read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(huge) })
	s := open(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	refused := func(err error, want string) {
		t.Helper()
		if !errors.Is(err, task.ErrTooLarge) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want ErrTooLarge with %q", err, want)
		}
	}
	const part, head = "a part has 500000001 bytes, more than 500000000", "the head has 1048577 bytes, more than 1048576"
	h := task.Head{ID: "t", Version: 1}
	large := h
	large.Asked = []task.Asked{{Key: "key", Inline: make([]byte, 1<<19)}}
	large.Outcome = &task.OutcomeRef{Inline: make([]byte, 1<<19-2)}
	refused(s.Create(t.Context(), large), head)
	refused(s.Create(t.Context(), h, task.Part{Data: []byte("fits")}, task.Part{Kind: task.PartOutcome, Data: huge}), part)
	if _, err := s.Head(t.Context(), "t"); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("after a refused create: %v", err)
	}
	if err := s.Create(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	h.Version, large.Version = 2, 2
	refused(s.Commit(t.Context(), time.Now(), large), head)
	refused(s.Commit(t.Context(), time.Now(), h, task.Part{Kind: task.PartOutcome, Data: huge}), part)
	if h, err := s.Head(t.Context(), "t"); err != nil || h.Version != 1 {
		t.Errorf("after a refused commit: version %d, %v", h.Version, err)
	}
	large.Outcome.Inline = large.Outcome.Inline[1:]
	if err := s.Commit(t.Context(), time.Now(), large); err != nil {
		t.Errorf("the largest head: %v", err)
	}
}
