package filekey

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// child, set in the environment, makes this test program one of several processes on a file.
const child = "FILEKEY_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(child); what != "" {
		if err := runChild(what, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runChild(what, path string) error {
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // until all are ready
		return err
	}
	switch what {
	case "create":
		f, err := OpenOrCreate(path)
		if err != nil {
			return err
		}
		fmt.Println(f.ID())
	case "rotate":
		for range 3 {
			info, err := Rotate(path)
			if err != nil {
				return err
			}
			fmt.Println(info.ID)
		}
	}
	return nil
}

// race runs n children at once and returns the lines they printed.
func race(t *testing.T, n int, what, path string, during func()) []string {
	t.Helper()
	type process struct {
		cmd    *exec.Cmd
		stdin  io.Closer
		out    *bufio.Reader
		stderr bytes.Buffer
	}
	var all []*process
	for range n {
		p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0], path)}
		p.cmd.Env = append(os.Environ(), child+"="+what)
		p.cmd.Stderr = &p.stderr
		stdin, err := p.cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := p.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		p.stdin, p.out = stdin, bufio.NewReader(stdout)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := p.out.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("child says %q, %v", line, err)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.stdin.Close()
	}
	during()
	var lines []string
	for _, p := range all {
		out, err := io.ReadAll(p.out)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, p.stderr.String())
		}
		lines = append(lines, strings.Fields(string(out))...)
	}
	return lines
}

func TestProcessesCreateOneKey(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), ".thaw", "state.key")
		ids := race(t, 4, "create", path, func() {})
		all, err := List(path)
		if err != nil || len(all) != 1 || len(ids) != 4 {
			t.Fatalf("%v made %v, %v", ids, all, err)
		}
		for _, id := range ids {
			if id != all[0].ID {
				t.Errorf("one process has key %s, the file %s", id, all[0].ID)
			}
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	}
}

func TestProcessesRotateWithoutLoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.key")
	first, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	ids := race(t, 4, "rotate", path, func() {
		for range 200 { // readers see whole files only
			if f, err := Open(path); err != nil || f.Keys()[len(f.Keys())-1].ID() != first.ID {
				t.Errorf("a reader in between: %v", err)
				return
			}
		}
	})
	all, err := List(path)
	if err != nil || len(all) != 13 || len(ids) != 12 {
		t.Fatalf("%d keys of %d rotations, %v", len(all), len(ids), err)
	}
	inFile := map[string]bool{}
	for _, info := range all {
		inFile[info.ID] = true
	}
	for _, id := range append(ids, first.ID) {
		if !inFile[id] {
			t.Errorf("key %s is lost", id)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
