package sqlitestore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

// sharedTasks is how many tasks the processes of the test meet at.
const sharedTasks = 3

func sharedTask(i int) string { return fmt.Sprint("t-", i%sharedTasks) }

// commitForEver adds entry after entry to the shared tasks, which it creates, and prints
// what it has committed. It ends with an error only.
func commitForEver(path string) error {
	s, err := sqlitestore.Open(path, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := range sharedTasks {
		h := task.Head{ID: sharedTask(i), Worker: rand.Text()}
		if err := again(func() error { return s.Create(ctx, h, task.Part{Data: bytes.Repeat([]byte("call "), 2000)}) }); err != nil && !errors.Is(err, task.ErrExists) {
			return err
		}
	}
	for i := 0; ; i++ {
		h, err := s.Head(ctx, sharedTask(i))
		if err != nil {
			return err
		}
		write := rand.Text()
		entry := task.Part{Kind: task.PartEntry, Epoch: 1, Seq: h.Journal, Data: append([]byte(write), make([]byte, mathrand.IntN(20_000))...)}
		h.Version++
		h.Journal++
		h.Worker = write
		err = again(func() error { return s.Commit(ctx, time.Now(), h, entry) })
		var conflict *task.Conflict
		switch {
		case err == nil:
			fmt.Println(h.ID, h.Version, write)
		case !errors.As(err, &conflict):
			return err
		}
	}
}

// again tries as a caller does that does not know whether its write was applied.
func again(write func() error) (err error) {
	for range 3 {
		var conflict *task.Conflict
		if err = write(); err == nil || errors.As(err, &conflict) || errors.Is(err, task.ErrExists) {
			break
		}
	}
	return err
}

// Processes that share a file are killed at any moment and started anew. What they print
// came after their commit, so it has to be there, as the whole of what was committed; and
// what is there without a word is of a process killed between the two.
func TestKilledProcessesLoseNoVersion(t *testing.T) {
	const processes, killsEach = 3, 6
	path := filepath.Join(t.TempDir(), ".thaw", "tasks.db")
	type version struct {
		id string
		n  uint64
	}
	var mu sync.Mutex
	committed := map[version]string{}
	record := func(line string) {
		var v version
		var write string
		if _, err := fmt.Sscan(line, &v.id, &v.n, &write); err != nil {
			t.Errorf("a process printed %q: %v", line, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if other, twice := committed[v]; twice {
			t.Errorf("version %d of %s was won by %s and by %s", v.n, v.id, other, write)
		}
		committed[v] = write
	}
	s := open(t, path, nil)
	whole := func(id string) (writes []string) {
		h, err := s.Head(t.Context(), id)
		if errors.Is(err, task.ErrNotFound) {
			return nil
		} else if err != nil {
			t.Error(err)
			return nil
		}
		entries, err := s.Parts(t.Context(), id, task.PartEntry, "", 0, h.Journal)
		if err != nil || h.Version != 1+uint64(h.Journal) {
			t.Errorf("version %d of %s with %d entries: %v", h.Version, id, h.Journal, err)
		}
		if _, err := s.Parts(t.Context(), id, task.PartCall, "", 0, 0); err != nil {
			t.Errorf("the call of %s: %v", id, err)
		}
		for _, e := range entries {
			writes = append(writes, string(e.Data[:26])) // the length of rand.Text
		}
		return writes
	}

	var killed atomic.Bool
	var reading, all sync.WaitGroup
	reading.Go(func() {
		for i := 0; !killed.Load(); i++ {
			whole(sharedTask(i))
		}
	})
	random := mathrand.New(mathrand.NewPCG(1, 2))
	for range processes {
		lives := make([]time.Duration, killsEach)
		for i := range lives {
			lives[i] = time.Duration(random.IntN(60_000)) * time.Microsecond
		}
		all.Go(func() {
			for _, life := range lives {
				runChild(t, path, "", life, record)
			}
		})
	}
	all.Wait()
	killed.Store(true)
	reading.Wait()

	found, silent := 0, 0
	for i := range sharedTasks {
		id := sharedTask(i)
		for seq, write := range whole(id) {
			v := version{id, uint64(seq) + 2}
			found++
			switch said, ok := committed[v]; {
			case !ok:
				silent++
			case said != write:
				t.Errorf("version %d of %s is of %s, won by %s", v.n, id, write, said)
			}
			delete(committed, v)
		}
	}
	for v := range committed {
		t.Errorf("version %d of %s is lost", v.n, v.id)
	}
	t.Logf("%d versions, %d of them without a word", found, silent)
	if found < 10 {
		t.Errorf("%d versions in all: the processes did next to nothing", found)
	}
	if silent > processes*killsEach {
		t.Errorf("%d versions without a word, more than processes were killed", silent)
	}
	if ok := value[string](t, raw(t, path), "PRAGMA integrity_check"); ok != "ok" {
		t.Error(ok)
	}
}
