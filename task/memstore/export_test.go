package memstore

import (
	"testing"

	"github.com/thaw-mcp/thaw/task"
)

var _ task.Sweeper = (*Store)(nil)

// Cut makes a Store of tests a storetest.Cutter.
func (s *Store) Cut(_ testing.TB, id string, p task.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tasks[id].parts, keyOf(&p))
}
