package sqlitestore_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// version1 is a copy of a file that the code of schema 1 made and closed. In it the call
// "running" is claimed in round 3, "finished" is finished in round 2, and of "released" round 1
// is finished and round 2 given back. Writes are the round 16 times, answers 0 to 31.
func version1(t *testing.T) (path string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "version1.db"))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "tasks.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if version := value[int](t, raw(t, path), "PRAGMA user_version"); version != 1 {
		t.Fatalf("the file is of version %d", version)
	}
	return path
}

func TestUpgradeOfVersion1(t *testing.T) {
	path := version1(t)
	s := open(t, path, nil)
	deadline := time.Date(2026, 7, 28, 12, 5, 0, 0, time.UTC)
	var answers [32]byte
	for i := range answers {
		answers[i] = byte(i)
	}
	for _, c := range []struct {
		call  string
		round int
		want  task.Used
	}{
		{"running", 1, task.Used{Round: 3, Answers: answers, Deadline: deadline}},
		{"running", 3, task.Used{Round: 3, Answers: answers, Deadline: deadline}},
		{"finished", 2, task.Used{Round: 2, Answers: answers, Deadline: deadline, Done: true, Response: []byte("the answer \x00\xff")}},
		{"released", 1, task.Used{Round: 1, Deadline: deadline, Done: true}},
	} {
		other := use(c.call, c.round, 9)
		other.Answers[31] = 9
		got := claim(t, s, other, false)
		if !bytes.Equal(got.Response, c.want.Response) || (got.Response == nil) != (c.want.Response == nil) {
			t.Errorf("%s, round %d: response %q, want %q", c.call, c.round, got.Response, c.want.Response)
		}
		got.Response, c.want.Response = nil, nil
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s, round %d: %v, want %v", c.call, c.round, got, c.want)
		}
	}
	running := use("running", 3, 3)
	running.Write = [16]byte(bytes.Repeat([]byte{3}, 16))
	if err := s.Finish(t.Context(), running, []byte("late")); err != nil {
		t.Error(err)
	}
	claim(t, s, use("released", 2, 1), true)
	if err := s.Create(t.Context(), task.Head{ID: "t"}); err != nil {
		t.Error(err)
	}
	if version := value[int](t, raw(t, path), "PRAGMA user_version"); version != 2 {
		t.Errorf("version %d, want 2", version)
	}
	if _, err := open(t, path, nil).Head(t.Context(), "t"); err != nil {
		t.Error(err)
	}
}

// An upgraded file and a new one are the same.
func TestUpgradeMakesTheSchemaOfNewFiles(t *testing.T) {
	schemaOf := func(path string) []string {
		if _, err := open(t, path, nil).Head(t.Context(), "t"); err == nil {
			t.Fatal("a task out of nothing")
		}
		rows, err := raw(t, path).QueryContext(t.Context(), "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var all []string
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		return all
	}
	upgraded, created := schemaOf(version1(t)), schemaOf(filepath.Join(t.TempDir(), "new.db"))
	if len(created) < 8 || !slices.Equal(upgraded, created) {
		t.Errorf("upgraded: %q\nnew: %q", upgraded, created)
	}
}

// Processes of both versions may meet at the file.
func TestUpgradeAmongOthers(t *testing.T) {
	path := version1(t)
	old := raw(t, path)
	claimOld := func(call string) {
		t.Helper()
		execute(t, old, `INSERT INTO uses (call, round, write, answers, deadline, expires) VALUES (?, 1, x'01', zeroblob(32), 1, 4102444800000)`, call)
	}
	claimOld("before")
	tx, err := old.BeginTx(t.Context(), &sql.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		s := open(t, path, nil)
		all.Go(func() {
			if err := s.Create(t.Context(), task.Head{ID: fmt.Sprint("t-", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	claimOld("after")
	s := open(t, path, nil)
	for i := range 8 {
		if _, err := s.Head(t.Context(), fmt.Sprint("t-", i)); err != nil {
			t.Error(err)
		}
	}
	for _, call := range []string{"before", "after"} {
		claim(t, s, use(call, 1, 2), false)
	}
}
