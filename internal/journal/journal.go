// Package journal is how a handler is run again from the top without doing or asking
// anything twice: Journal is what the call has learned and done, Run one run over it.
package journal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Kind says what an entry records.
type Kind uint8

const (
	Answer  Kind = iota // a client's answer to a question
	Value               // what a step gave
	Failure             // how a step failed
	Tried               // how often a step was tried that is to be tried again
)

// recorded reports whether the entry is what a step or a poll gave.
func (e *Entry) recorded() bool { return e.Kind == Value || e.Kind == Failure }

// Entry is one recorded fact. Data is JSON.
type Entry struct {
	Key    string
	Kind   Kind
	Digest Digest // of the question, for an Answer
	Data   []byte
}

// Asked is a question that the client has and has not answered.
type Asked struct {
	Key, Method string
	Digest      Digest
}

// Journal is what a call has learned and done, in the order in which it did. The zero
// value is empty.
type Journal struct {
	Entries []Entry
	Asked   []Asked
}

// Digest tells one question from another: 128 bits, so that no two can be made to match.
type Digest [16]byte

// DigestOf is the digest of what the client is asked.
func DigestOf(q call.Question) Digest {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("thaw/v1/question"), []byte(q.Method), q.Params} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return Digest(h.Sum(nil))
}

func (d Digest) append(dst []byte) []byte {
	dst = append(dst, '"')
	dst = base64.RawURLEncoding.AppendEncode(dst, d[:])
	return append(dst, '"')
}

func readDigest(value []byte) (d Digest, ok bool) {
	text, _ := strictjson.String(value)
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(d) {
		return d, false
	}
	return Digest(b), true
}

// The JSON of a journal is an object with a member for each kind that occurs, each of them
// an object by key:
//
//	"a": answers,   key: [digest, answer]
//	"v": values,    key: value
//	"f": failures,  key: failure
//	"t": tries,     key: [how many, milliseconds of Unix time of the next]
//	"q": questions, key: [method, digest]
//
// An old journal has to be read by a newer binary, so members keep their meaning; an
// unknown one is an error, since to leave it out would be to forget.
var members = [...]string{Answer: "a", Value: "v", Failure: "f", Tried: "t"}

const memberAsked = "q"

// AppendJSON appends the journal.
func (j *Journal) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	open := func(name string) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(strictjson.AppendString(dst, name), ":{"...)
	}
	for kind, name := range members {
		n := 0
		for i := range j.Entries {
			e := &j.Entries[i]
			if e.Kind != Kind(kind) {
				continue
			}
			if n == 0 {
				open(name)
			}
			dst = appendKey(dst, n, e.Key)
			if e.Kind == Answer {
				dst = append(e.Digest.append(append(dst, '[')), ',')
				dst = append(append(dst, e.Data...), ']')
			} else {
				dst = append(dst, e.Data...)
			}
			n++
		}
		if n > 0 {
			dst = append(dst, '}')
		}
	}
	for i, a := range j.Asked {
		if i == 0 {
			open(memberAsked)
		}
		dst = append(strictjson.AppendString(append(appendKey(dst, i, a.Key), '['), a.Method), ',')
		dst = append(a.Digest.append(dst), ']')
	}
	if len(j.Asked) > 0 {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendKey(dst []byte, n int, key string) []byte {
	if n > 0 {
		dst = append(dst, ',')
	}
	return append(strictjson.AppendString(dst, key), ':')
}

// size is what the entry takes in AppendJSON.
func (e *Entry) size() int {
	n := len(strictjson.AppendString(nil, e.Key)) + len(e.Data) + len(`:,`)
	if e.Kind == Answer {
		n += base64.RawURLEncoding.EncodedLen(len(e.Digest)) + len(`["",]`)
	}
	return n
}

var errMalformed = errors.New("malformed journal")

// Parse reads what AppendJSON wrote. The entries alias text.
func Parse(text []byte) (*Journal, error) {
	if err := strictjson.Check(text, maxDepth); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if strictjson.Kind(text) != '{' {
		return nil, errMalformed
	}
	j := &Journal{}
	for name, value := range strictjson.Members(text) {
		if n := string(name); n != memberAsked && !slices.Contains(members[:], n) {
			return nil, fmt.Errorf("%w: unknown member %q", errMalformed, n)
		}
		if strictjson.Kind(value) != '{' {
			return nil, errMalformed
		}
		for key, data := range strictjson.Members(value) {
			if err := j.parse(string(name), string(key), data); err != nil {
				return nil, err
			}
		}
	}
	return j, nil
}

// maxDepth is what a request may nest, and the arrays and objects around it.
const maxDepth = 1 << 16

func (j *Journal) parse(member, key string, data []byte) error {
	switch member {
	case members[Value]:
		j.Entries = append(j.Entries, Entry{Key: key, Kind: Value, Data: data})
	case members[Failure]:
		j.Entries = append(j.Entries, Entry{Key: key, Kind: Failure, Data: data})
	case members[Tried]:
		if !checkTries(data) {
			return errMalformed
		}
		j.Entries = append(j.Entries, Entry{Key: key, Kind: Tried, Data: data})
	case members[Answer]:
		first, second, ok := pair(data)
		d, whole := readDigest(first)
		if !ok || !whole {
			return errMalformed
		}
		j.Entries = append(j.Entries, Entry{Key: key, Kind: Answer, Digest: d, Data: second})
	default:
		first, second, ok := pair(data)
		method, named := strictjson.String(first)
		d, whole := readDigest(second)
		if !ok || !named || !whole {
			return errMalformed
		}
		j.Asked = append(j.Asked, Asked{Key: key, Method: method, Digest: d})
	}
	return nil
}

func pair(array []byte) (first, second []byte, ok bool) {
	if strictjson.Kind(array) != '[' {
		return nil, nil, false
	}
	n := 0
	for value := range strictjson.Elements(array) {
		switch n {
		case 0:
			first = value
		case 1:
			second = value
		}
		n++
	}
	return first, second, n == 2
}
