package auth

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
)

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}

func writeKeys(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newTestKeys(t testing.TB, text string, o *APIKeyOptions) Scheme {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, text)
	if o == nil {
		o = &APIKeyOptions{Logger: slog.New(slog.DiscardHandler)}
	}
	s, err := APIKeys(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewAPIKey(t *testing.T) {
	seen := make(map[string]bool)
	for range 100 {
		key, line := must2(NewAPIKey("ci@example.com", []string{"files:read", "files:write"}))
		if len(key) != len("thaw_")+43 || !strings.HasPrefix(key, "thaw_") || seen[key] || strings.Contains(line, key[5:]) {
			t.Fatalf("key of %d characters, line %q", len(key), line)
		}
		seen[key] = true
		got, err := authenticate(t, newTestKeys(t, "# keys\n"+line+"\n", nil), key)
		want := thaw.Principal{Scheme: "apikey", Subject: "ci@example.com", Scopes: []string{"files:read", "files:write"}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("principal %+v, %v", got, err)
		}
	}
	for _, test := range []struct {
		name, key string
		scopes    []string
	}{
		{"empty name", "", nil},
		{"space", "a b", nil},
		{"newline", "a\nb", nil},
		{"comment", "#a", nil},
		{"beyond ASCII", "j\u00fcrgen", nil},
		{"long", strings.Repeat("a", 257), nil},
		{"a key for a name", "thaw_abc", nil},
		{"empty scope", "a", []string{""}},
		{"scope with a comma", "a", []string{"b,c"}},
		{"scope with a space", "a", []string{"b c"}},
		{"scope with a quote", "a", []string{`b"`}},
		{"scope that is a comment", "a", []string{"#b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if key, line, err := NewAPIKey(test.key, test.scopes); err == nil || key != "" || line != "" {
				t.Errorf("NewAPIKey = %q, %v", line, err)
			}
		})
	}
}

func TestAPIKeyIsRefused(t *testing.T) {
	key, line := must2(NewAPIKey("ci", nil))
	s := newTestKeys(t, line, nil)
	digest := strings.Fields(line)[1]
	for name, token := range map[string]string{
		"unknown":                   "thaw_" + strings.Repeat("A", 43),
		"prefix alone":              "thaw_",
		"shortened":                 key[:len(key)-1],
		"lengthened":                key + "A",
		"in other letters":          "thaw_" + strings.ToUpper(key[5:]),
		"the digest for the key":    "thaw_" + digest,
		"looks like a token behind": "thaw_eyJhbGciOiJub25lIn0.e30.",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := authenticate(t, s, token); !errors.Is(err, errUnknownKey) {
				t.Errorf("error %v, want %v", err, errUnknownKey)
			}
		})
	}
	for name, line := range map[string]string{"other prefix": "THAW_" + key[5:], "the digest": digest, "no prefix": key[5:]} {
		t.Run(name, func(t *testing.T) {
			if who, ok, err := s.Authenticate(requestWith(t, "Bearer "+line)); ok || err != nil {
				t.Errorf("Authenticate = %+v, %t, %v", who, ok, err)
			}
		})
	}
}

func TestAPIKeyFile(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	tests := []struct {
		name, text string
		says       string // of the error; "" if it is good
	}{
		{"empty", "", ""},
		{"comments and blank lines", "# a\n\n  \t\n#b " + digest + "\n", ""},
		{"comment behind", "ci " + digest + " # since May\nx " + digest[1:] + "0 a,b #c", ""},
		{"Windows line ends", "ci " + digest + " a\r\n", ""},
		{"tabs, upper-case digits", "\tci\t" + strings.ToUpper(digest), ""},
		{"one name twice", "ci " + digest + "\nci " + digest[1:] + "0\n", ""},
		{"no digest", "ci\n", "line 1: it must be a name"},
		{"too many words", "\nci " + digest + " a b\n", "line 2: it must be a name"},
		{"scopes with spaces", "ci " + digest + " a, b", "line 1: it must be a name"},
		{"short digest", "ci " + digest[2:], "64 hexadecimal digits"},
		{"long digest", "ci " + digest + "00", "64 hexadecimal digits"},
		{"no digits", "ci " + digest[:63] + "g", "64 hexadecimal digits"},
		{"the key itself", "ci thaw_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U", "64 hexadecimal digits"},
		{"the key for a name", "thaw_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U " + digest, "begins like a key"},
		{"one digest twice", "a " + digest + "\nb " + digest, "line 2: its digest stands on an earlier line"},
		{"empty scope", "ci " + digest + " a,,b", "scope"},
		{"binary", "\x00\x01\x02", "line 1"},
		{"too large", strings.Repeat("#\n", maxKeyFile/2) + "#", "more than 1048576 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			writeKeys(t, path, test.text)
			s, err := APIKeys(path, nil)
			if test.says == "" {
				if err != nil || s == nil {
					t.Errorf("APIKeys = %v, %v", s, err)
				}
				return
			}
			if err == nil || s != nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
				t.Fatalf("APIKeys = %v, %v; want an error with %q", s, err, test.says)
			}
			if strings.Contains(err.Error(), "c2VjcmV0") || strings.Contains(err.Error(), digest[:20]) {
				t.Errorf("error %q repeats the line", err)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		if s, err := APIKeys(filepath.Join(t.TempDir(), "keys"), nil); !errors.Is(err, os.ErrNotExist) || s != nil || !strings.Contains(err.Error(), "apikey new") {
			t.Errorf("APIKeys = %v, %v", s, err)
		}
	})
	t.Run("without a key", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "keys")
		for text, warns := range map[string]bool{"": true, "# none yet\n": true, "ci " + digest + "\n": false} {
			writeKeys(t, path, text)
			var log bytes.Buffer
			if _, err := APIKeys(path, &APIKeyOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil || strings.Contains(log.String(), "admits nobody") != warns {
				t.Errorf("%q: %v, log %q", text, err, log.String())
			}
		}
	})
}

// The file is read again when it changes, at most once a second, and a broken one changes nothing.
func TestAPIKeyFileChanges(t *testing.T) {
	key1, line1 := must2(NewAPIKey("ci", []string{"a"}))
	key2, line2 := must2(NewAPIKey("ci", []string{"b"}))
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, line1)
	now := epoch
	var log testLog
	s, err := APIKeys(path, &APIKeyOptions{Now: func() time.Time { return now }, Logger: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want1, want2 error) {
		t.Helper()
		for key, want := range map[string]error{key1: want1, key2: want2} {
			if _, err := authenticate(t, s, key); !errors.Is(err, want) {
				t.Errorf("%s: error %v, want %v", when, err, want)
			}
		}
	}
	expect("at first", nil, errUnknownKey)
	writeKeys(t, path, line1+"\n"+line2)
	now = now.Add(999 * time.Millisecond)
	expect("within the second", nil, errUnknownKey)
	now = now.Add(time.Millisecond)
	expect("added", nil, nil)
	writeKeys(t, path, line2+"\n"+strings.Repeat("#", len(line1)))
	now = now.Add(time.Second)
	expect("removed, with the size and maybe the time of before", errUnknownKey, nil)

	for range 3 {
		writeKeys(t, path, line1+"\nbroken")
		now = now.Add(time.Second)
		expect("broken", errUnknownKey, nil)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	expect("gone", errUnknownKey, nil)
	if n := strings.Count(log.String(), "API keys not read again"); n != 2 {
		t.Errorf("%d warnings, want one for each fault:\n%s", n, &log)
	}
	writeKeys(t, path, "")
	now = now.Add(time.Second)
	expect("emptied", errUnknownKey, errUnknownKey)
	writeKeys(t, path, line1)
	now = now.Add(-time.Hour)
	expect("the clock was set back", nil, errUnknownKey)
	if leaked(log.String(), key1)+leaked(log.String(), key2) != "" {
		t.Errorf("the log has a key:\n%s", &log)
	}
}

func TestAPIKeysConcurrently(t *testing.T) {
	key, line := must2(NewAPIKey("ci", []string{"a"}))
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, line)
	var mu sync.Mutex
	now := epoch
	s, err := APIKeys(path, &APIKeyOptions{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(100 * time.Millisecond)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				who, err := authenticate(t, s, key)
				if err != nil || !slices.Equal(who.Scopes, []string{"a"}) {
					t.Errorf("principal %+v, %v", who, err)
					return
				}
				who.Scopes[0] = "admin"
			}
		})
	}
	wg.Wait()
}

// FuzzKeyFile: a line that is taken is one that NewAPIKey could have written.
func FuzzKeyFile(f *testing.F) {
	_, line := must2(NewAPIKey("ci", []string{"a", "b"}))
	for _, text := range []string{"", line, line + " # c", "#" + line, "ci thaw_x", "a b c d", line + "\r"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, line string) {
		ring := make(keyring)
		if err := ring.add(line); err != nil {
			if len(ring) != 0 {
				t.Errorf("%q: %v and %v", line, err, ring)
			}
			return
		}
		for digest, entry := range ring {
			if len(ring) != 1 || checkKeyName(entry.name) != nil || checkScopes(entry.scopes) != nil || digest == [32]byte{} && !strings.Contains(line, strings.Repeat("0", 64)) {
				t.Errorf("%q became %v", line, ring)
			}
		}
	})
}
