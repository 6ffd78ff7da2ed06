package deletefiles_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

func args(files ...string) deletefiles.In { return deletefiles.In{Files: files} }

// start calls the tool, which has to ask.
func start(t *testing.T, files deletefiles.Files, in deletefiles.In) *thawtest.Call {
	t.Helper()
	c := thawtest.Start(t, deletefiles.New(files), in, nil)
	if asked := c.Asked(); !slices.Equal(asked, []string{"agree"}) {
		t.Fatalf("asked is %q, result %+v, error %v", asked, c.Result(), c.Err())
	}
	return c
}

func output(t *testing.T, c *thawtest.Call) string {
	t.Helper()
	return fmt.Sprintf("%+v", thawtest.Output[deletefiles.Out](c))
}

func TestAsksAndDeletes(t *testing.T) {
	m := newMemory("a.txt", "b.txt", "c/d.txt", "other.txt")
	c := start(t, m, args("c/d.txt", "./a.txt", "missing.txt", "c/../b.txt", "a.txt", "c//d.txt"))
	if got, want := c.Message("agree"), "Delete 3 files?\n\"c/d.txt\"\n\"a.txt\"\n\"b.txt\""; got != want {
		t.Errorf("asks\n%s\nwant\n%s", got, want)
	}
	if m.deletes != 0 {
		t.Error("it deleted before it was answered")
	}
	c.Answer(thawtest.Answers{"agree": true})
	if got, want := output(t, c), "{Deleted:[c/d.txt a.txt b.txt] Missing:[missing.txt] Kept:[] Declined:false}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := m.paths(); got != "other.txt" {
		t.Errorf("left is %q", got)
	}
}

func TestDecline(t *testing.T) {
	for _, action := range []thawtest.Action{thawtest.Decline, thawtest.Dismiss} {
		m := newMemory("a.txt")
		c := start(t, m, args("a.txt", "missing.txt")).Answer(thawtest.Answers{"agree": action})
		if got, want := output(t, c), "{Deleted:[] Missing:[missing.txt] Kept:[] Declined:true}"; got != want {
			t.Errorf("%s: got %s, want %s", action, got, want)
		}
		if m.deletes != 0 || m.paths() != "a.txt" {
			t.Errorf("%s: left is %q", action, m.paths())
		}
	}
}

func TestNothingToAskFor(t *testing.T) {
	m := newMemory("other.txt")
	c := thawtest.Start(t, deletefiles.New(m), args("a.txt", "b.txt"), nil)
	if got, want := output(t, c), "{Deleted:[] Missing:[a.txt b.txt] Kept:[] Declined:false}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRefusedArguments(t *testing.T) {
	m := newMemory("a.txt", "folder/")
	m.lookErr["link/x"] = deletefiles.ErrOutside
	const advice = "; allowed are relative paths of files, with forward slashes"
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"none", []string{}, "/files"},
		{"empty", []string{""}, "/files/0"},
		{"too many", slices.Repeat([]string{"a.txt"}, 101), "/files"},
		{"too long", []string{strings.Repeat("x", 1025)}, "/files/0"},
		{"too many bytes", []string{strings.Repeat("é", 513)}, "is longer than 1024 bytes" + advice},
		{"absolute", []string{"a.txt", "/etc/passwd"}, `nothing was deleted: "/etc/passwd" is absolute` + advice},
		{"parent", []string{"../a.txt"}, `"../a.txt" leads outside` + advice},
		{"parent, hidden", []string{"x/../../a.txt"}, `"x/../../a.txt" leads outside` + advice},
		{"parent alone", []string{".."}, `".." leads outside` + advice},
		{"root", []string{"."}, `"." names a folder` + advice},
		{"root, hidden", []string{"x/.."}, `"x/.." names a folder` + advice},
		{"trailing slash", []string{"a.txt/"}, `"a.txt/" names a folder` + advice},
		{"NUL", []string{"a\x00.txt"}, `"a\x00.txt" has a control character` + advice},
		{"line end", []string{"a\n\"b.txt\""}, `"a\n\"b.txt\"" has a control character` + advice},
		{"noncharacter", []string{"a\uffff"}, `"a\uffff" has a control character` + advice},
		{"several", []string{"/x", "..", "a.txt"}, `"/x" is absolute, ".." leads outside` + advice},
		{"folder", []string{"a.txt", "folder"}, `nothing was deleted: "folder" is no file`},
		{"through a link", []string{"link/x"}, `nothing was deleted: "link/x" leads outside`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := thawtest.Start(t, deletefiles.New(m), args(tt.files...), nil)
			if !c.IsError() || !strings.Contains(c.Text(), tt.want) {
				t.Errorf("asked %q, answered %q, want an error with %q", c.Asked(), c.Text(), tt.want)
			}
		})
	}
	if m.deletes != 0 {
		t.Error("something was deleted")
	}
}

func TestManyWrongPathsAreCut(t *testing.T) {
	paths := slices.Repeat([]string{"/x"}, 100)
	c := thawtest.Start(t, deletefiles.New(newMemory()), args(paths...), nil)
	if n := strings.Count(c.Text(), "is absolute"); n != 20 || !strings.Contains(c.Text(), "and 80 more; allowed") {
		t.Errorf("%d paths in %q", n, c.Text())
	}
}

// The user agreed to the files that were there and to no others.
func TestChangesWhileTheUserIsAsked(t *testing.T) {
	m := newMemory("stays.txt", "changes.txt", "vanishes.txt", "comes-back.txt")
	c := start(t, m, args("stays.txt", "changes.txt", "vanishes.txt", "comes-back.txt", "appears.txt"))
	m.put("changes.txt")
	m.drop("vanishes.txt")
	m.drop("comes-back.txt")
	m.put("comes-back.txt")
	m.put("appears.txt")
	c.Answer(thawtest.Answers{"agree": true})
	const why = "it has changed since the user was asked"
	want := "{Deleted:[stays.txt vanishes.txt] Missing:[appears.txt] Kept:[{File:changes.txt Why:" + why + "} {File:comes-back.txt Why:" + why + "}] Declined:false}"
	if got := output(t, c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := m.paths(), "appears.txt changes.txt comes-back.txt"; got != want {
		t.Errorf("left is %q, want %q", got, want)
	}
}

func TestPartialFailure(t *testing.T) {
	m := newMemory("a.txt", "denied.txt", "broken.txt", "b.txt")
	m.keepErr["denied.txt"] = &fs.PathError{Op: "unlink", Path: "/srv/internal/denied.txt", Err: fs.ErrPermission}
	m.keepErr["broken.txt"] = errors.New("internal detail")
	c := start(t, m, args("a.txt", "denied.txt", "broken.txt", "b.txt")).Answer(thawtest.Answers{"agree": true})
	want := "{Deleted:[a.txt b.txt] Missing:[] Kept:[{File:denied.txt Why:the server may not delete it}" +
		" {File:broken.txt Why:deleting it failed; the server's log says why}] Declined:false}"
	if got := output(t, c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := m.paths(), "broken.txt denied.txt"; got != want {
		t.Errorf("left is %q, want %q", got, want)
	}
	if strings.Contains(c.Text(), "internal") {
		t.Errorf("what is for the log reached the client: %s", c.Text())
	}
}

// An outage before the question is an error of the call: nothing was decided yet.
func TestOutageWhileLooking(t *testing.T) {
	m := newMemory("a.txt", "b.txt")
	m.lookErr["b.txt"] = errors.New("no connection")
	c := thawtest.Start(t, deletefiles.New(m), args("a.txt", "b.txt"), nil)
	if !c.IsError() || !strings.HasPrefix(c.Text(), "delete_files failed (reference ") {
		t.Errorf("answered %q, want a masked error", c.Text())
	}
	if m.deletes != 0 {
		t.Error("something was deleted")
	}
}

func TestClientThatCannotBeAsked(t *testing.T) {
	m := newMemory("a.txt")
	c := thawtest.Start(t, deletefiles.New(m), args("a.txt"), &thawtest.Options{NoElicit: true})
	var e *mcp.Error
	if !errors.As(c.Err(), &e) || e.Code != -32021 || m.deletes != 0 {
		t.Errorf("%v, %d deletions", c.Err(), m.deletes)
	}
}

func TestCrash(t *testing.T) {
	m := newMemory("a.txt", "b.txt")
	c := start(t, m, args("a.txt", "b.txt", "missing.txt")).Answer(thawtest.Answers{"agree": true})
	first := output(t, c)
	m.put("b.txt") // somebody else's
	c.Crash()
	if m.deletes != 2 || m.looks != 1 {
		t.Fatalf("%d deletions and %d looks, want 2 and 1", m.deletes, m.looks)
	}
	want := "{Deleted:[a.txt] Missing:[missing.txt] Kept:[{File:b.txt Why:it has changed since the user was asked}] Declined:false}"
	if got := output(t, c); got != want {
		t.Errorf("after %s\ngot  %s\nwant %s", first, got, want)
	}
	if m.paths() != "b.txt" {
		t.Errorf("left is %q", m.paths())
	}
}

func TestShake(t *testing.T) {
	world := func() *thaw.Tool {
		m := newMemory("a.txt", "b.txt", "c/d.txt", "denied.txt")
		m.keepErr["denied.txt"] = fs.ErrPermission
		return deletefiles.New(m)
	}
	for name, answer := range map[string]bool{"agreed": true, "declined": false} {
		t.Run(name, func(t *testing.T) {
			thawtest.Shake(t, world, args("a.txt", "c/d.txt", "missing.txt", "b.txt", "denied.txt"), thawtest.Answers{"agree": answer}, nil)
		})
	}
}

// Another instance goes on, with another connection to the same place.
func TestAnotherInstance(t *testing.T) {
	m := newMemory("a.txt")
	c := start(t, m, args("a.txt")).Replace(deletefiles.New(m)).Answer(thawtest.Answers{"agree": true})
	if got, want := output(t, c), "{Deleted:[a.txt] Missing:[] Kept:[] Declined:false}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// olderTool stands for a version of the tool that cleaned paths in another way.
func olderTool(versions []string, question string) *thaw.Tool {
	return thaw.NewTool("delete_files", "", func(ctx context.Context, _ deletefiles.In) (deletefiles.Out, error) {
		if _, err := thaw.Step(ctx, "look", func(context.Context) ([]string, error) { return versions, nil }); err != nil {
			return deletefiles.Out{}, err
		}
		_, err := thaw.Confirm(ctx, "agree", question)
		return deletefiles.Out{}, err
	}, nil)
}

// A yes to three files is no yes to others, whatever made the list a different one.
func TestChangedListIsAskedAgain(t *testing.T) {
	m := newMemory("a.txt", "b.txt")
	c := thawtest.Start(t, olderTool([]string{"v1", "v2"}, "Delete 2 files?\n\"a.txt\"\n\"c.txt\""), args("a.txt", "b.txt"), nil)
	c.Replace(deletefiles.New(m)).Answer(thawtest.Answers{"agree": true})
	if c.Done() || m.deletes != 0 || !strings.Contains(c.Message("agree"), `"b.txt"`) {
		t.Fatalf("an old yes was taken: done %t, %d deletions, asked %q", c.Done(), m.deletes, c.Message("agree"))
	}
	c.Answer(thawtest.Answers{"agree": true})
	if m.paths() != "" {
		t.Errorf("left is %q", m.paths())
	}
}

func TestOlderListOfAnotherLength(t *testing.T) {
	m := newMemory("a.txt", "b.txt")
	c := thawtest.Start(t, olderTool([]string{"v1"}, "Delete?"), args("a.txt", "b.txt"), nil)
	c.Replace(deletefiles.New(m)).Answer(thawtest.Answers{"agree": true})
	if !c.IsError() || m.deletes != 0 {
		t.Errorf("result %+v, %d deletions", c.Result(), m.deletes)
	}
}

// The most that the arguments allow fits into what a call keeps (24 KB).
func TestLargestCall(t *testing.T) {
	m := newMemory()
	var paths []string
	for i := range 100 {
		path := fmt.Sprintf("%03d%s", i, strings.Repeat("é", 510))
		m.files[path] = strings.Repeat(`"`, 100) // which JSON doubles
		m.keepErr[path] = errors.New("no")
		paths = append(paths, path)
	}
	c := start(t, m, args(paths...)).Answer(thawtest.Answers{"agree": true})
	if out := thawtest.Output[deletefiles.Out](c); len(out.Kept) != 100 {
		t.Errorf("%d files kept, want 100", len(out.Kept))
	}
}

func TestTheEndOfTheCall(t *testing.T) {
	m := newMemory("a.txt")
	ctx, cancel := context.WithCancel(thawtest.Context(t, thawtest.Answers{"agree": true}))
	_, err := deletefiles.New(canceling{m, cancel}).Call(ctx, []byte(`{"files":["a.txt"]}`))
	if !errors.Is(err, context.Canceled) || m.paths() != "a.txt" {
		t.Errorf("%v, left is %q", err, m.paths())
	}
}

// canceling cancels the call when it comes to deleting.
type canceling struct {
	*memory
	cancel context.CancelFunc
}

func (c canceling) Delete(ctx context.Context, files []deletefiles.File) []error {
	c.cancel()
	return c.memory.Delete(ctx, files)
}

func TestDefinition(t *testing.T) {
	d := deletefiles.New(newMemory()).Definition()
	if a := d.Annotations; a.ReadOnlyHint || a.DestructiveHint != nil || a.IdempotentHint {
		t.Errorf("a deletion is announced as %+v", a)
	}
}
