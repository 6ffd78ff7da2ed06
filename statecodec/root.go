package statecodec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// cachedEpochs is how many epochs of a key are held: as many as tokens may be of.
	cachedEpochs = 4

	// A key service gets callAttempts of callTimeout each and callTotal in all. A pause of
	// up to callPause between them keeps instances apart.
	callAttempts = 2
	callTimeout  = time.Second
	callTotal    = 2500 * time.Millisecond
	callPause    = 250 * time.Millisecond

	// After a failure a key is left alone for a while.
	firstWait  = 250 * time.Millisecond
	lastWait   = 5 * time.Second
	deniedWait = 30 * time.Second
)

// rootKey is a key and what is in memory of it.
type rootKey struct {
	Key
	kid kid

	mu     sync.Mutex
	epochs [cachedEpochs]cacheSlot
	failed failure
}

// cacheSlot holds the keys of one epoch, or the call that will bring them.
type cacheSlot struct {
	epoch uint32
	keys  *epochKeys
	call  *call
}

// call is a call of the key service for which any number of requests wait.
type call struct {
	done chan struct{} // closed when the rest is set
	keys *epochKeys
	err  error
}

// failure is why a key is not asked, and until when.
type failure struct {
	err   error
	until time.Time
	wait  time.Duration
}

// slot returns the place of epoch. The caller holds k.mu.
func (k *rootKey) slot(epoch uint32) *cacheSlot {
	s := &k.epochs[epoch%cachedEpochs]
	if s.epoch != epoch {
		*s = cacheSlot{epoch: epoch}
	}
	return s
}

// cached returns the keys of epoch, or nil if they are not in memory.
func (k *rootKey) cached(epoch uint32) *epochKeys {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := &k.epochs[epoch%cachedEpochs]; s.epoch == epoch {
		return s.keys
	}
	return nil
}

// fetch returns the keys of epoch, which must be one that tokens may be of, from memory or
// the key service. The call is one for all who wait and outlives each of them, so that a
// client that leaves takes nothing from the others.
func (c *Codec) fetch(ctx context.Context, k *rootKey, epoch uint32) (*epochKeys, error) {
	k.mu.Lock()
	s := k.slot(epoch)
	if s.keys != nil {
		defer k.mu.Unlock()
		return s.keys, nil
	}
	if s.call == nil {
		if c.now().Before(k.failed.until) {
			defer k.mu.Unlock()
			return nil, k.failed.err
		}
		s.call = &call{done: make(chan struct{})}
		go c.run(context.WithoutCancel(ctx), k, epoch, s.call)
	}
	waiting := s.call
	k.mu.Unlock()
	select {
	case <-waiting.done:
		return waiting.keys, waiting.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrKeyUnavailable, context.Cause(ctx))
	}
}

func (c *Codec) run(ctx context.Context, k *rootKey, epoch uint32, this *call) {
	this.keys, this.err = c.ask(ctx, k, epoch)
	defer close(this.done)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := &k.epochs[epoch%cachedEpochs]; s.call == this { // else the days went on
		s.keys, s.call = this.keys, nil
	}
	if this.err == nil {
		k.failed = failure{}
		return
	}
	c.logger.Warn("state key", "key", k.ID(), "kid", KID(k.ID()), "epoch", epoch, "err", this.err)
	k.failed.note(this.err, c.now(), c.jitter())
}

// note adds one more failure, seen at now.
func (f *failure) note(err error, now time.Time, jitter float64) {
	f.err = err
	if errors.Is(err, ErrKeyDenied) {
		f.wait, f.until = 0, now.Add(deniedWait)
		return
	}
	f.wait = min(max(2*f.wait, firstWait), lastWait)
	f.until = now.Add(f.wait/2 + time.Duration(jitter*float64(f.wait/2)))
}

// ask calls the key service.
func (c *Codec) ask(ctx context.Context, k *rootKey, epoch uint32) (*epochKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, callTotal)
	defer cancel()
	for attempt := 1; ; attempt++ {
		root, err := askOnce(ctx, k, epoch)
		if err == nil {
			return deriveKeys(root)
		}
		if attempt == callAttempts || errors.Is(err, ErrKeyDenied) {
			return nil, err
		}
		pause := time.NewTimer(time.Duration(c.jitter() * float64(callPause)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, err
		}
	}
}

func askOnce(ctx context.Context, k Key, epoch uint32) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	root, err := k.MAC(ctx, rootMessage(epoch))
	switch {
	case err == nil && len(root) == rootSize:
		return root, nil
	case err == nil:
		return nil, fmt.Errorf("%w: key %s made a MAC of %d bytes, not %d", ErrKeyUnavailable, k.ID(), len(root), rootSize)
	case errors.Is(err, ErrKeyDenied) || errors.Is(err, ErrKeyUnavailable):
		return nil, err
	}
	return nil, fmt.Errorf("%w: key %s: %v", ErrKeyUnavailable, k.ID(), err)
}
