package sqlitestore_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

// The test binary is also the other processes: with these set it claims, or commits if there
// is nowhere to begin, until it is killed.
const (
	childFile = "SQLITESTORE_TEST_FILE"
	childFrom = "SQLITESTORE_TEST_FROM"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		fmt.Fprintln(os.Stderr, child(path, os.Getenv(childFrom)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func child(path, from string) error {
	if from == "" {
		return commitForEver(path)
	}
	call, err := strconv.Atoi(from)
	if err != nil {
		return err
	}
	return claimForEver(path, call)
}

// rounds is how many rounds each call of the test has.
const rounds = 2

// claimForEver claims all rounds of call after call and prints those that were its own,
// with the write. It ends with an error only.
func claimForEver(path string, from int) error {
	s, err := sqlitestore.Open(path, nil)
	if err != nil {
		return err
	}
	for call := from; ; call++ {
		for round := 1; round <= rounds; round++ {
			u := use(strconv.Itoa(call), round, 0)
			rand.Read(u.Write[:])
			first, prev, err := claimAgain(s, u)
			switch {
			case err != nil:
				return err
			case !first && prev.Round < round:
				return fmt.Errorf("call %d round %d: refused for round %d", call, round, prev.Round)
			case !first:
				continue
			}
			fmt.Println(call, round, fmt.Sprintf("%x", u.Write))
			if err := s.Finish(context.Background(), u, u.Write[:]); err != nil && !errors.Is(err, task.ErrNotClaimed) {
				return err
			}
		}
	}
}

// claimAgain tries as a caller does that does not know whether its write was applied.
func claimAgain(s task.Store, u task.Use) (first bool, prev task.Used, err error) {
	for range 3 {
		if first, prev, err = s.Claim(context.Background(), u); err == nil {
			break
		}
	}
	return first, prev, err
}

// Processes that share a file are killed at any moment and started anew. What they print
// came after their claim, so a round that two of them print was used twice, and a round
// that none prints is one whose process was killed between the claim and the print.
func TestKilledProcessesNeverShareARound(t *testing.T) {
	const processes, killsEach = 4, 6
	path := filepath.Join(t.TempDir(), ".thaw", "tasks.db")
	var (
		mu     sync.Mutex
		firsts = map[[2]int]string{}
		last   int
	)
	record := func(line string) {
		var call, round int
		var write string
		if _, err := fmt.Sscan(line, &call, &round, &write); err != nil {
			t.Errorf("a process printed %q: %v", line, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if other, twice := firsts[[2]int{call, round}]; twice {
			t.Errorf("call %d round %d was first for %s and for %s", call, round, other, write)
		}
		firsts[[2]int{call, round}] = write
		last = max(last, call)
	}
	from := func() int {
		mu.Lock()
		defer mu.Unlock()
		return max(0, last-5) // where the others are, so that they meet
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	var all sync.WaitGroup
	for range processes {
		lives := make([]time.Duration, killsEach)
		for i := range lives {
			lives[i] = time.Duration(random.IntN(60_000)) * time.Microsecond
		}
		all.Go(func() {
			for _, life := range lives {
				runChild(t, path, strconv.Itoa(from()), life, record)
			}
		})
	}
	all.Wait()

	s := open(t, path, nil)
	silent := 0
	for call := range last {
		prev := claim(t, s, use(strconv.Itoa(call), rounds, 1), false)
		for round := 1; round <= rounds; round++ {
			if firsts[[2]int{call, round}] == "" {
				silent++
			}
		}
		write := firsts[[2]int{call, rounds}]
		if prev.Done && write != "" && fmt.Sprintf("%x", prev.Response) != write {
			t.Errorf("call %d was finished by %x, claimed by %s", call, prev.Response, write)
		}
	}
	t.Logf("%d rounds of %d calls, %d of them without a word", len(firsts), last, silent)
	if last < 10 {
		t.Errorf("%d calls in all: the processes did next to nothing", last)
	}
	if silent > processes*killsEach {
		t.Errorf("%d rounds are gone, more than processes were killed", silent)
	}
	if ok := value[string](t, raw(t, path), "PRAGMA integrity_check"); ok != "ok" {
		t.Error(ok)
	}
}

// runChild runs a process and kills it when life has passed since its first line.
func runChild(t *testing.T, path, from string, life time.Duration, line func(string)) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFile+"="+path, childFrom+"="+from)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	var kill *time.Timer
	lines := bufio.NewReader(stdout)
	for {
		text, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if kill == nil {
			kill = time.AfterFunc(life, func() { cmd.Process.Kill() })
		}
		line(text)
	}
	cmd.Wait()
	if stderr.Len() > 0 {
		t.Errorf("a process failed: %s", stderr.String())
	}
}

// Stores that open a new file at the same moment use the same one.
func TestCreatedOnce(t *testing.T) {
	for range 5 {
		folder := filepath.Join(t.TempDir(), ".thaw")
		const n = 8
		var firsts [n]bool
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range n {
			s := open(t, filepath.Join(folder, "tasks.db"), nil)
			all.Go(func() {
				<-start
				first, _, err := s.Claim(t.Context(), use("c", 1, byte(i+1)))
				if err != nil {
					t.Error(err)
				}
				firsts[i] = first
			})
		}
		close(start)
		all.Wait()
		won := 0
		for _, first := range firsts {
			if first {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d claims were first, want 1", won)
		}
		if left, err := filepath.Glob(filepath.Join(folder, "*.new-*")); err != nil || len(left) > 0 {
			t.Errorf("%v is left (%v)", left, err)
		}
	}
}
