package filekey

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/statecodec"
)

// goodLine is a line that another program made.
const (
	goodLine     = "THAW-STATE-KEY-1 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc " + goodChecksum + " 2026-11-30T16:00:00Z\n"
	goodChecksum = "a3d824cb"
)

func writeFile(t testing.TB, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.key")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustRead(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOpen(t *testing.T) {
	f, err := Open(writeFile(t, goodLine, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	// HMAC-SHA-256 under 32 x 0x07.
	if f.ID() != "file:b64d61055c3c2231" || len(f.Keys()) != 1 || f.Keys()[0].ID() != f.ID() {
		t.Errorf("id %s, %d keys", f.ID(), len(f.Keys()))
	}
	// The root of the vector in statecodec, which has the same secret.
	mac, err := f.MAC(t.Context(), []byte("thaw/v1/root\x00\x00\x00\x51\x33"))
	if got := fmt.Sprintf("%x", mac); err != nil || got != "15c10df041b54a552682e62e0766057162fd0a72b27fe0fad6a22903780f94a6" {
		t.Errorf("MAC %s, %v", got, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	secret := strings.Fields(goodLine)[1]
	folder := t.TempDir()
	for _, c := range []struct {
		name, path, want string
	}{
		{"missing", filepath.Join(folder, "no.key"), "does not exist; the command keys new makes it"},
		{"no path", "", "needs a path"},
		{"a folder", folder, "no regular file"},
		{"through a file", filepath.Join(writeFile(t, goodLine, 0o600), "state.key"), "not a directory"},
		{"group may write", writeFile(t, goodLine, 0o620), "may be written by others than its owner (mode 0620); make it 0600"},
		{"all may write", writeFile(t, goodLine, 0o602), "mode 0602"},
		{"empty", writeFile(t, "", 0o600), "no key in it"},
		{"too long", writeFile(t, strings.Repeat("x", maxFile+1), 0o600), "more than 4096 bytes"},
		{"blank line", writeFile(t, goodLine+"\n", 0o600), "line 2: not of the form"},
		{"CR LF", writeFile(t, strings.TrimSpace(goodLine)+"\r\n", 0o600), "line 1: the time"},
		{"other version", writeFile(t, strings.Replace(goodLine, "KEY-1", "KEY-2", 1), 0o600), "line 1: not of the form THAW-STATE-KEY-1"},
		{"five fields", writeFile(t, strings.TrimSpace(goodLine)+" x\n", 0o600), "line 1: not of the form"},
		{"short key", writeFile(t, strings.Replace(goodLine, secret, secret[4:], 1), 0o600), "line 1: the key is not 32 bytes"},
		{"padded key", writeFile(t, strings.Replace(goodLine, secret, secret+"=", 1), 0o600), "line 1: the key is not 32 bytes"},
		{"loose last bits", writeFile(t, strings.Replace(goodLine, "Bwc ", "Bwd ", 1), 0o600), "line 1: the key is not 32 bytes"},
		{"changed key", writeFile(t, strings.Replace(goodLine, "BwcH", "BwcG", 1), 0o600), "line 1: the checksum"},
		{"checksum in capitals", writeFile(t, strings.Replace(goodLine, goodChecksum, strings.ToUpper(goodChecksum), 1), 0o600), "line 1: the checksum"},
		{"no time", writeFile(t, strings.Replace(goodLine, "2026-11-30T16:00:00Z", "now", 1), 0o600), "line 1: the time"},
		{"same key twice", writeFile(t, goodLine+goodLine, 0o600), "line 2: the key of line 1 again"},
		{"second line damaged", writeFile(t, goodLine+"x\n", 0o600), "line 2: not of the form"},
		{"too many keys", writeFile(t, string(format(manyKeys(MaxKeys+1))), 0o600), "17 keys; allowed are 16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for how, open := range map[string]func(string) error{
				"Open":          func(path string) error { _, err := Open(path); return err },
				"Scheme().Open": func(path string) error { _, err := Scheme().Open(t.Context(), path); return err },
				"List":          func(path string) error { _, err := List(path); return err },
				"Rotate":        func(path string) error { _, err := Rotate(path); return err },
			} {
				err := open(c.path)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: got error %v, want one with %q", how, err, c.want)
				} else if strings.Contains(err.Error(), secret[4:20]) {
					t.Errorf("%s: the key is in the error %v", how, err)
				}
				if missing := errors.Is(err, fs.ErrNotExist); missing != (c.name == "missing") {
					t.Errorf("%s: matches fs.ErrNotExist: %v", how, missing)
				}
			}
		})
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("opening left %v, %v", entries, err)
	}
}

func manyKeys(n int) []*key {
	var keys []*key
	for range n {
		keys = append(keys, newKey(time.Unix(1, 0)))
	}
	return keys
}

func TestFolderEveryoneMayWrite(t *testing.T) {
	path := writeFile(t, goodLine, 0o600)
	folder := filepath.Dir(path)
	for mode, want := range map[fs.FileMode]bool{
		0o700:                 true,
		0o755:                 true,
		0o777 | fs.ModeSticky: true, // nobody can replace another's file there
		0o775:                 true, // a group of his own

		0o702: false,
	} {
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
		for how, err := range map[string]error{
			"Open":         func() error { _, err := Open(path); return err }(),
			"OpenOrCreate": func() error { _, err := OpenOrCreate(path); return err }(),
			"New":          func() error { _, err := New(filepath.Join(folder, "other.key")); return err }(),
		} {
			if how == "New" && errors.Is(err, fs.ErrExist) {
				err = nil
			}
			if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "make it 0700") {
				t.Errorf("%v: %s: %v", mode, how, err)
			}
		}
	}
}

// What others may read is taken: mounted secrets are like that.
func TestMountedSecretOpens(t *testing.T) {
	if _, err := Open(writeFile(t, goodLine, 0o444)); err != nil {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(writeFile(t, goodLine, 0o444), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(link); err != nil {
		t.Error(err)
	}
}

func TestOpenOrCreate(t *testing.T) {
	folder := filepath.Join(t.TempDir(), ".thaw")
	path := filepath.Join(folder, "state.key")
	made, err := OpenOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{folder: 0o700, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	if got := mustRead(t, filepath.Join(folder, ".gitignore")); got != "*\n" { // the folder was made for it
	}
	again, err := OpenOrCreate(path)
	if err != nil || again.ID() != made.ID() {
		t.Errorf("opened again: %v, %v", again, err)
	}
	other, err := OpenOrCreate(filepath.Join(t.TempDir(), "state.key"))
	if err != nil || other.ID() == made.ID() {
		t.Errorf("another file has the key too, %v", err)
	}
	if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOrCreate(path); err == nil || mustRead(t, path) != "torn" {
		t.Errorf("a damaged file was replaced: %v", err)
	}
}

func TestNewKeepsRulesOfOthers(t *testing.T) {
	folder := t.TempDir()
	rules := filepath.Join(folder, ".gitignore")
	if err := os.WriteFile(rules, []byte("*.o\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "state.key")
	info, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, rules); got != "*.o\n" {
		t.Errorf(".gitignore became %q", got)
	}
	f, err := Open(path)
	if err != nil || f.ID() != info.ID || info.KID != statecodec.KID(info.ID) || !info.Replaced.IsZero() {
		t.Errorf("made %+v, opened %v, %v", info, f, err)
	}
	before := mustRead(t, path)
	if _, err := New(path); !errors.Is(err, fs.ErrExist) || mustRead(t, path) != before {
		t.Errorf("made again: %v", err)
	}
	if _, err := New(""); err == nil {
		t.Error("made a file without a path")
	}
}

func TestGitIgnorePatternNamesTheFileOnly(t *testing.T) {
	folder := t.TempDir()
	if err := ignore(filepath.Join(folder, `a[1]*?\.key`), false); err != nil {
		t.Fatal(err)
	}
	if got, want := mustRead(t, filepath.Join(folder, ".gitignore")), `/a\[1]\*\?\\.key*`+"\n"; got != want {
		t.Errorf(".gitignore is %q, want %q", got, want)
	}
}

// A file that was cut anywhere, or has a bit changed, gives its own keys or none.
func TestDamagedFilesGiveNoOtherKey(t *testing.T) {
	keys := manyKeys(2)
	text := format(keys)
	check := func(name string, text []byte) {
		got, err := parse(text)
		if err != nil {
			return
		}
		for i, k := range got {
			if k.secret != keys[i].secret {
				t.Errorf("%s: key %d is another", name, i)
			}
		}
	}
	whole := 0
	for n := range text {
		check(fmt.Sprintf("cut after %d bytes", n), text[:n])
		if _, err := parse(text[:n]); err == nil {
			whole++
		}
	}
	if whole != 3 { // after the first line with or without its end, and without the last end
		t.Errorf("%d of the cuts are taken, want 3", whole)
	}
	for i := range text {
		for bit := range 8 {
			damaged := bytes.Clone(text)
			damaged[i] ^= 1 << bit
			check(fmt.Sprintf("bit %d of byte %d", bit, i), damaged)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(goodLine))
	f.Add(format(manyKeys(3)))
	f.Add([]byte("THAW-STATE-KEY-1 x y z\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parse(text)
		if err != nil {
			if keys != nil {
				t.Fatal("keys came beside an error")
			}
			return
		}
		again, err := parse(format(keys))
		if err != nil || len(again) != len(keys) {
			t.Fatalf("%q is written anew to %d keys, %v", text, len(again), err)
		}
		for i := range keys {
			if again[i].secret != keys[i].secret || !again[i].created.Equal(keys[i].created) {
				t.Fatalf("key %d of %q is written anew as another", i, text)
			}
		}
	})
}
