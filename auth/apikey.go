package auth

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/thaw-mcp/thaw"
)

// APIKeyOptions configures APIKeys; the zero value is as good as nil.
type APIKeyOptions struct {
	// Now is the time of day; nil is time.Now.
	Now func() time.Time
	// Logger gets a warning if the file has become unreadable; nil is slog.Default.
	Logger *slog.Logger
}

const errUnknownKey = refusal("unknown API key")

type apiKeys struct {
	path string
	now  func() time.Time
	log  *slog.Logger
	ring atomic.Pointer[keyring]

	mu    sync.Mutex
	read  time.Time // when the file was last looked at
	text  []byte    // what it held
	fault string    // what was wrong with it, if it was logged
}

// APIKeys is the scheme of API keys, sent as Authorization: Bearer thaw_…. The file at path lists
// them, one a line:
//
//	name sha256-of-the-key-in-hex [scope,scope]
//
// What follows a # that starts a word is a comment; NewAPIKey makes a key and its line. The name
// is the caller's subject. Two lines with one name are how a key is replaced: add the new one,
// hand it out, remove the old one. A file without a key admits nobody.
//
// The file is read now, and looked at again when a key comes, at most once a second. One that can
// no longer be read or understood is logged, and the keys of before stay; to withdraw all of
// them, empty it. Replace it by renaming, so that no half of it is ever read.
func APIKeys(path string, o *APIKeyOptions) (Scheme, error) {
	s := &apiKeys{path: path, now: time.Now, log: slog.Default()}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	if o != nil && o.Logger != nil {
		s.log = o.Logger
	}
	s.read = s.now()
	text, ring, err := readKeyring(path)
	if err != nil {
		return nil, err
	}
	if len(ring) == 0 {
		s.log.Warn("auth: the file of API keys has none: it admits nobody", "file", path)
	}
	s.text = text
	s.ring.Store(&ring)
	return s, nil
}

// Authenticate takes bearer tokens that have the prefix of API keys and no others.
func (s *apiKeys) Authenticate(r *http.Request) (thaw.Principal, bool, error) {
	text, ok, err := bearer(r.Header)
	if err != nil || !ok || !isAPIKey(text) {
		return thaw.Principal{}, false, err
	}
	s.refresh()
	// Digests of 256 random bits: how long the look-up takes says nothing that helps to guess one.
	entry, ok := (*s.ring.Load())[sha256.Sum256([]byte(text))]
	if !ok {
		return thaw.Principal{}, false, errUnknownKey
	}
	return thaw.Principal{Scheme: schemeAPIKey, Subject: entry.name, Scopes: slices.Clone(entry.scopes)}, true, nil
}

// refresh reads the file again if that was not done within the last second. Times and sizes of
// files are too coarse to tell whether one has changed, and it is small. Nobody waits for it but
// the request that does it.
func (s *apiKeys) refresh() {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	now := s.now().Round(0)
	if now.Sub(s.read).Abs() < time.Second {
		return
	}
	s.read = now
	text, ring, err := readKeyring(s.path)
	switch {
	case err != nil:
		if s.fault != err.Error() {
			s.fault = err.Error()
			s.log.Error("auth: API keys not read again; those of before stay", "error", err)
		}
	case s.fault != "" || !bytes.Equal(text, s.text):
		s.fault, s.text = "", text
		s.ring.Store(&ring)
		s.log.Info("auth: API keys read again", "keys", len(ring))
	}
}

// keyring are the keys of a file by their digest.
type keyring map[[sha256.Size]byte]keyEntry

type keyEntry struct {
	name   string
	scopes []string
}

const maxKeyFile = 1 << 20 // bytes

func readKeyring(path string) ([]byte, keyring, error) {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("auth: API keys: %w; apikey new NAME makes a key, and its line for that file", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("auth: API keys: %w", err)
	}
	ring := make(keyring)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if err := ring.add(line); err != nil {
			return nil, nil, fmt.Errorf("auth: API keys: %s, line %d: %w", path, n, err)
		}
	}
	return text, ring, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Whoever may write it can add callers.
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has the mode %v; it must not be writable by its group or everyone", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxKeyFile)
	}
	return text, err
}

// add reads a line. Its errors repeat nothing of it: it may hold a key where a digest belongs.
func (ring keyring) add(line string) error {
	words := strings.Fields(line)
	for i, word := range words {
		if word[0] == '#' {
			words = words[:i]
			break
		}
	}
	if len(words) == 0 {
		return nil
	}
	if len(words) < 2 || len(words) > 3 {
		return errors.New("it must be a name, a digest and perhaps a list of scopes")
	}
	if err := checkKeyName(words[0]); err != nil {
		return err
	}
	digest, err := parseDigest(words[1])
	if err != nil {
		return err
	}
	if _, ok := ring[digest]; ok {
		return errors.New("its digest stands on an earlier line already")
	}
	entry := keyEntry{name: words[0]}
	if len(words) == 3 {
		entry.scopes = strings.Split(words[2], ",")
		if err := checkScopes(entry.scopes); err != nil {
			return err
		}
	}
	ring[digest] = entry
	return nil
}
