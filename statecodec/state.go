package statecodec

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// CallID names one call through all its rounds: random in the first, sealed into every
// state after it. It never leaves the server: whatever others see is derived from it, each
// under a label of its own. That includes its String.
type CallID [16]byte

// NewCallID returns a random id.
func NewCallID() CallID {
	var id CallID
	rand.Read(id[:])
	return id
}

// LogID is the call's name in logs and errors: 32 hex digits.
func (id CallID) LogID() string {
	sum := digest("thaw/v1/log-id", string(id[:]))
	return hex.EncodeToString(sum[:16])
}

// IdempotencyKey is what a step of the call hands to services downstream: 32 hex digits,
// the same on every try of the step and on no other step.
func (id CallID) IdempotencyKey(step string) string {
	sum := digest("thaw/v1/idempotency-key", string(id[:]), step)
	return hex.EncodeToString(sum[:16])
}

// TaskID is the id of the task that the call becomes: a UUID of version 8, with 122 bits that
// nobody can guess. It is the same for the call on every try, so that creating the task is
// what can happen once.
func (id CallID) TaskID() string {
	sum := digest("thaw/v1/task-id", string(id[:]))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// String is the LogID.
func (id CallID) String() string { return id.LogID() }

// LogValue is the LogID.
func (id CallID) LogValue() slog.Value { return slog.StringValue(id.LogID()) }

// State is what one round of a call hands to the next. Times have whole seconds.
type State struct {
	CallID CallID
	// Started is when the call's first round began; zero in a state to seal: now.
	Started time.Time
	// Issued and Expires are set by Seal.
	Issued, Expires time.Time
	// Revision is that of the tool.
	Revision uint32
	// Round counts from 1 to MaxRounds.
	Round uint16
	// Journal is what the call has learned and done, opaque here.
	Journal []byte
}

// stamp sets the times of a state that is sealed now.
func (s *State) stamp(now time.Time, ttl time.Duration) error {
	switch {
	case s.CallID == CallID{}:
		return errors.New("statecodec: a state needs a call id")
	case s.Round > MaxRounds:
		return fmt.Errorf("%w: round %d, allowed are %d", ErrTooLarge, s.Round, MaxRounds)
	case len(s.Journal) > MaxJournal:
		return fmt.Errorf("%w: a journal of %d bytes, allowed are %d", ErrTooLarge, len(s.Journal), MaxJournal)
	}
	now = time.Unix(now.Unix(), 0)
	if s.Started.IsZero() {
		s.Started = now
	}
	s.Issued = now
	s.Expires = now.Add(ttl)
	if end := s.Started.Add(CallLifetime); end.Before(s.Expires) {
		s.Expires = end
	}
	if !now.Before(s.Expires) {
		return fmt.Errorf("%w: the call began more than %v ago", ErrExpired, CallLifetime)
	}
	if s.Started.Unix() < 0 || s.Started.After(s.Expires) || s.Expires.Unix() > math.MaxUint32 {
		return errors.New("statecodec: a state needs times from 1970 to 2106 and a start before its end")
	}
	return nil
}

// The plaintext of a token. Numbers are big-endian, times are seconds since 1970.
const (
	atCallID    = 0
	atAudience  = 16
	atPrincipal = 32
	atRequest   = 48
	atStarted   = 80
	atIssued    = 84
	atExpires   = 88
	atRevision  = 92
	atRound     = 96
	atLength    = 98
	atJournal   = 100

	// padTo hides the journal's length up to so many bytes.
	padTo = 48
)

// paddedSize is the size of the plaintext with a journal of n bytes.
func paddedSize(n int) int { return (atJournal + n + padTo - 1) / padTo * padTo }

// encode returns the plaintext of a state that stamp let pass.
func (s *State) encode(b *Binding) []byte {
	p := make([]byte, paddedSize(len(s.Journal)))
	copy(p[atCallID:], s.CallID[:])
	copy(p[atAudience:], b.Audience[:])
	copy(p[atPrincipal:], b.Principal[:])
	copy(p[atRequest:], b.Request[:])
	binary.BigEndian.PutUint32(p[atStarted:], uint32(s.Started.Unix()))
	binary.BigEndian.PutUint32(p[atIssued:], uint32(s.Issued.Unix()))
	binary.BigEndian.PutUint32(p[atExpires:], uint32(s.Expires.Unix()))
	binary.BigEndian.PutUint32(p[atRevision:], s.Revision)
	binary.BigEndian.PutUint16(p[atRound:], s.Round)
	binary.BigEndian.PutUint16(p[atLength:], uint16(len(s.Journal)))
	copy(p[atJournal:], s.Journal)
	return p
}

// decode reads a plaintext that is authentic, and says false if this package did not
// write it all the same. The journal aliases p.
func decode(p []byte) (s State, b Binding, ok bool) {
	if len(p) < atJournal {
		return s, b, false
	}
	n := int(binary.BigEndian.Uint16(p[atLength:]))
	if len(p) != paddedSize(n) {
		return s, b, false
	}
	for _, c := range p[atJournal+n:] {
		if c != 0 {
			return s, b, false
		}
	}
	b = Binding{
		Audience:  [16]byte(p[atAudience:]),
		Principal: [16]byte(p[atPrincipal:]),
		Request:   [32]byte(p[atRequest:]),
	}
	s = State{
		CallID:   CallID(p[atCallID:]),
		Started:  unix(p[atStarted:]),
		Issued:   unix(p[atIssued:]),
		Expires:  unix(p[atExpires:]),
		Revision: binary.BigEndian.Uint32(p[atRevision:]),
		Round:    binary.BigEndian.Uint16(p[atRound:]),
		Journal:  p[atJournal : atJournal+n : atJournal+n],
	}
	return s, b, true
}

func unix(p []byte) time.Time { return time.Unix(int64(binary.BigEndian.Uint32(p)), 0).UTC() }
