package filekey

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw/statecodec"
)

func TestRotateAndRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock is ours
		path := filepath.Join(t.TempDir(), "state.key")
		a, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		list := func(want ...string) []Info {
			t.Helper()
			all, err := List(path)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, info := range all {
				ids = append(ids, info.ID)
			}
			if got := strings.Join(ids, " "); got != strings.Join(want, " ") {
				t.Fatalf("keys %s, want %s", got, want)
			}
			return all
		}
		rotate := func() Info {
			t.Helper()
			info, err := Rotate(path)
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		retire := func(olderThan time.Duration, force bool, want ...string) {
			t.Helper()
			removed, err := Retire(path, olderThan, force)
			if err != nil || len(removed) != len(want) {
				t.Fatalf("removed %v, %v; want %v", removed, err, want)
			}
			for i := range want {
				if removed[i].ID != want[i] {
					t.Fatalf("removed %v, want %v", removed, want)
				}
			}
		}
		<-time.After(time.Hour)
		b := rotate()
		<-time.After(time.Hour)
		c := rotate()
		all := list(c.ID, b.ID, a.ID)
		if !all[0].Replaced.IsZero() || !all[1].Replaced.Equal(c.Created) || !all[2].Replaced.Equal(b.Created) ||
			c.Created.Sub(a.Created) != 2*time.Hour || all[2].Created != a.Created {
			t.Errorf("listed %+v", all)
		}
		f, err := Open(path)
		if err != nil || f.ID() != c.ID || len(f.Keys()) != 3 {
			t.Errorf("opened %v, %v", f, err)
		}

		for _, olderThan := range []time.Duration{0, statecodec.CallLifetime - 1, -1} {
			if _, err := Retire(path, olderThan, false); err == nil || !strings.Contains(err.Error(), "allowed is 24h0m0s or more") {
				t.Errorf("retired keys of %v ago: %v", olderThan, err)
			}
		}
		retire(statecodec.CallLifetime, false)
		<-time.After(23*time.Hour + noticed - 1) // a was replaced a moment less than 24 h and a minute ago
		retire(statecodec.CallLifetime, false)
		<-time.After(1)
		retire(statecodec.CallLifetime, false, a.ID)
		list(c.ID, b.ID)
		retire(0, true, b.ID)
		list(c.ID)
		<-time.After(1000 * time.Hour)
		retire(0, true)
		list(c.ID)

		// An incident: the key is replaced and gone at once.
		d := rotate()
		retire(0, true, c.ID)
		list(d.ID)
		for range MaxKeys - 1 {
			rotate()
		}
		if _, err := Rotate(path); err == nil || !strings.Contains(err.Error(), "retire some first") {
			t.Errorf("rotated beyond the limit: %v", err)
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 2 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	})
}

func TestChangesKeepModeAndLink(t *testing.T) {
	path := writeFile(t, goodLine, 0o640)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Rotate(link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	if all, err := List(path); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

// A lock that nobody gives back is waited for, and then named.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, goodLine, 0o600)
		held := path + ".lock"
		if err := os.WriteFile(held, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := Rotate(path)
		if err == nil || !strings.Contains(err.Error(), held+" has been there for 5s") || time.Since(start) != lockWait {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		go func() {
			<-time.After(time.Second)
			os.Remove(held)
		}()
		if _, err := Rotate(path); err != nil {
			t.Errorf("after the lock was given back: %v", err)
		}
	})
}

// A Codec follows the file.
func TestCodecFollowsTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), ".thaw", "state.key")
		codec := func() *statecodec.Codec {
			f, err := OpenOrCreate(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := statecodec.New([]statecodec.Key{f}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		seal := func(c *statecodec.Codec) string {
			token, err := c.Seal(t.Context(), statecodec.State{CallID: statecodec.NewCallID()}, statecodec.Binding{})
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		open := func(c *statecodec.Codec, token string) error {
			_, err := c.Open(t.Context(), token, statecodec.Binding{}, 0)
			return err
		}
		one, two := codec(), codec()
		old := seal(one)
		if err := open(two, old); err != nil {
			t.Fatal(err)
		}
		if _, err := Rotate(path); err != nil {
			t.Fatal(err)
		}
		three := codec()
		young := seal(three)
		<-time.After(time.Second)
		for name, c := range map[string]*statecodec.Codec{"one": one, "two": two, "three": three} {
			if err := errors.Join(open(c, old), open(c, young)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		<-time.After(time.Minute)
		if token := seal(one); token[:8] != young[:8] {
			t.Error("one goes on with the old key")
		}
		if _, err := Retire(path, 0, true); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		seal(one)
		if err := open(one, old); !errors.Is(err, statecodec.ErrUnknownKey) {
			t.Errorf("a state of a retired key: %v", err)
		}
	})
}
