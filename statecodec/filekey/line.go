package filekey

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
)

const (
	version = "THAW-STATE-KEY-1"
	// MaxKeys is how many keys a file may hold; more only means that none was ever retired.
	MaxKeys = 16
	maxFile = MaxKeys * 256
)

var encoding = base64.RawURLEncoding.Strict()

// key is a line of the file.
type key struct {
	secret  [32]byte
	created time.Time
}

func newKey(now time.Time) *key {
	k := &key{created: now.UTC().Truncate(time.Second)}
	rand.Read(k.secret[:])
	return k
}

func (k *key) checksum() string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(k.secret[:])) }

func format(keys []*key) []byte {
	var b bytes.Buffer
	for _, k := range keys {
		fmt.Fprintln(&b, version, encoding.EncodeToString(k.secret[:]), k.checksum(), k.created.Format(time.RFC3339))
	}
	return b.Bytes()
}

// parse is strict: what is not exactly a key file is torn, mistaken or tampered with. Its
// errors name the line and quote nothing of it.
func parse(text []byte) ([]*key, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	var keys []*key
	for line := range strings.Lines(string(text)) {
		k, err := parseLine(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(keys)+1, err)
		}
		for i, other := range keys {
			if other.secret == k.secret {
				return nil, fmt.Errorf("line %d: the key of line %d again", len(keys)+1, i+1)
			}
		}
		keys = append(keys, k)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("no key in it")
	case len(keys) > MaxKeys:
		return nil, fmt.Errorf("%d keys; allowed are %d", len(keys), MaxKeys)
	}
	return keys, nil
}

func parseLine(line string) (*key, error) {
	fields := strings.Split(line, " ")
	if len(fields) != 4 || fields[0] != version {
		return nil, fmt.Errorf("not of the form %s KEY CRC32 TIME", version)
	}
	k := &key{}
	secret, err := encoding.DecodeString(fields[1])
	if err != nil || len(secret) != len(k.secret) {
		return nil, fmt.Errorf("the key is not %d bytes in base64url", len(k.secret))
	}
	copy(k.secret[:], secret)
	if fields[2] != k.checksum() {
		return nil, errors.New("the checksum is not the key's: the line is damaged")
	}
	if k.created, err = time.Parse(time.RFC3339, fields[3]); err != nil {
		return nil, errors.New("the time is not in the form of RFC 3339")
	}
	return k, nil
}
