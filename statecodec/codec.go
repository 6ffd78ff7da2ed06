// Package statecodec seals what a call needs next into a token that the client carries,
// MCP's requestState, and opens it again on any instance that holds the same key.
//
// The key service is asked for one MAC a day and key, of which the keys of that day are
// derived; sealing and opening are local. No key travels in a token, so all that forged ones
// can buy of the key service is the roots of days on which a true one may have been sealed: four
// for each listed key, once.
package statecodec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultTTL is how long a client has for its answer.
	DefaultTTL = time.Hour
	// MaxTTL is the most that Options may ask for.
	MaxTTL = 24 * time.Hour
	// CallLifetime bounds a call over all its rounds: no state expires later than this after
	// the first round began, so sealing again cannot renew a call for ever.
	CallLifetime = 24 * time.Hour
	// MaxRounds bounds how often a call may ask.
	MaxRounds = 20
	// MaxToken is the longest token in characters: it travels in bodies, both ways.
	MaxToken = 32768
	// MaxJournal is the longest journal in bytes, which is what fits into MaxToken.
	MaxJournal = 24380
	// MaxKeys is how many keys may be listed. A list is for rotation, and each key costs a
	// call on a cold instance.
	MaxKeys = 4

	// maxSkew is how far another instance's clock may be ahead.
	maxSkew = time.Minute
)

// Options are what may be set of a Codec. The zero value, and nil, is right for production.
type Options struct {
	// TTL is how long a state may be used after it was sealed; 0 is DefaultTTL.
	TTL time.Duration
	// Logger gets a line for each failed call of a key service and each failed reload of a
	// Ring, with the key's ID. They are few: failures are remembered for a while. Nil: none.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Jitter returns a random number in [0, 1), by which instances that do the same at once
	// are spread; nil is math/rand/v2.Float64.
	Jitter func() float64
}

// Codec seals and opens. It is safe for concurrent use.
type Codec struct {
	ttl    time.Duration
	logger *slog.Logger
	now    func() time.Time
	jitter func() float64
	// mintDelay is how far into a day this instance goes on with yesterday's keys, so that
	// a fleet does not ask for today's all at once.
	mintDelay time.Duration

	listed    []Key
	rings     []Ring // of those
	keys      atomic.Pointer[keySet]
	reloading sync.Mutex
	reloaded  time.Time // for whatever cause

	reloadedUnknown time.Time // for a key that was not known
}

// New returns a Codec for keys: the first mints, all open. To rotate from OLD to NEW, list
// OLD,NEW on every instance, then NEW,OLD, then after CallLifetime NEW alone. It does no
// I/O.
func New(keys []Key, o *Options) (*Codec, error) {
	if o == nil {
		o = &Options{}
	}
	c := &Codec{ttl: o.TTL, logger: o.Logger, now: o.Now, jitter: o.Jitter, listed: slices.Clone(keys)}
	if c.ttl == 0 {
		c.ttl = DefaultTTL
	}
	if c.ttl < time.Second || c.ttl > MaxTTL {
		return nil, fmt.Errorf("statecodec: a TTL of %v; allowed is %v to %v", o.TTL, time.Second, MaxTTL)
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.jitter == nil {
		c.jitter = rand.Float64
	}
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("statecodec: %d keys; allowed are 1 to %d", len(keys), MaxKeys)
	}
	for _, key := range keys {
		if ring, ok := key.(Ring); ok {
			c.rings = append(c.rings, ring)
		}
	}
	set, err := newKeySet(c.listed, nil)
	if err != nil {
		return nil, err
	}
	c.keys.Store(set)
	c.mintDelay = time.Duration(c.jitter() * float64(time.Hour))
	return c, nil
}

// Ready reports whether a state could be sealed, and fetches the key for it if need be.
// Asked before a call's first effect, it makes an outage of the key service fail the call
// while that costs nothing. Errors: ErrKeyUnavailable, ErrKeyDenied.
func (c *Codec) Ready(ctx context.Context) error {
	_, _, err := c.minting(ctx)
	return err
}

// Seal returns the token of s, bound to b. It sets Issued to now and Expires to the
// earlier of now + TTL and Started + CallLifetime. Errors: ErrTooLarge, ErrExpired when the
// call's time is over, ErrKeyUnavailable, ErrKeyDenied, and others for a state without a
// call id or with times that a token cannot hold.
func (c *Codec) Seal(ctx context.Context, s State, b Binding) (token string, err error) {
	if err := s.stamp(c.now(), c.ttl); err != nil {
		return "", err
	}
	h, keys, err := c.minting(ctx)
	if err != nil {
		return "", err
	}
	plaintext := s.encode(&b)
	defer clear(plaintext)
	return sealToken(keys.state, h, plaintext)
}

// Open returns the state in token if it was sealed for b by this server, in time, at
// minRevision of the tool or later. Its errors are this package's
// sentinels, of which the first that applies is returned, in the order they are declared
// in. Beside an error the state is zero.
func (c *Codec) Open(ctx context.Context, token string, b Binding, minRevision uint32) (State, error) {
	h, sealed, err := parseToken(token)
	if err != nil {
		return State{}, err
	}
	keys, err := c.opening(ctx, h)
	if err != nil {
		return State{}, err
	}
	s, bound, err := keys.openState(h, sealed)
	if err != nil {
		return State{}, err
	}
	now := c.now()
	if s.Issued.After(now.Add(maxSkew)) {
		return State{}, ErrForged
	}
	if !now.Before(s.Expires) {
		return State{}, ErrExpired
	}
	if err := b.check(&bound); err != nil {
		return State{}, err
	}
	if s.Revision < minRevision {
		return State{}, ErrStale
	}
	return s, nil
}

// minting returns what to seal with: today's keys if they are in memory, yesterday's if
// those are and today's are not yet wanted or cannot be had, else today's, fetched.
func (c *Codec) minting(ctx context.Context) (header, *epochKeys, error) {
	k := c.mint(ctx)
	now := c.now()
	today := epochOf(now)
	if keys := k.cached(today); keys != nil {
		return header{k.kid, today}, keys, nil
	}
	yesterday := header{k.kid, today - 1}
	fallback := k.cached(yesterday.epoch)
	if fallback != nil && now.Sub(startOf(today)) < c.mintDelay {
		return yesterday, fallback, nil
	}
	keys, err := c.fetch(ctx, k, today)
	if err != nil && fallback != nil {
		return yesterday, fallback, nil
	}
	return header{k.kid, today}, keys, err
}

// opening returns the keys that a token or record with this header must be sealed with.
// What it may fetch for a forged header is bounded: the keys of few days for each listed
// key, each once.
func (c *Codec) opening(ctx context.Context, h header) (*epochKeys, error) {
	// Nothing lives so long that it needs the keys of more than three days back. Where the
	// next day's are good already, those of the fourth day back no longer are: they never
	// need more room than the cache has.
	newest := epochOf(c.now().Add(maxSkew))
	if h.epoch > newest || newest-h.epoch >= cachedEpochs {
		return nil, ErrUnknownKey
	}
	k, mints := c.find(ctx, h.kid)
	if k == nil {
		return nil, ErrUnknownKey
	}
	keys, err := c.fetch(ctx, k, h.epoch)
	if !mints && errors.Is(err, ErrKeyDenied) {
		return nil, fmt.Errorf("%w: %v", ErrUnknownKey, err) // retired at the key service before it left the list
	}
	return keys, err
}
