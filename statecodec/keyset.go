package statecodec

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How often at most the rings are read again.
const (
	reloadUnknown = time.Second // for a key that is not known
	reloadMinting = time.Minute // for whether another mints now
)

// keySet is the listed keys with the members of rings in their place. It does not change.
type keySet struct {
	mint  *rootKey
	byKID map[kid]*rootKey
}

// newKeySet keeps what old has in memory of keys that are still there.
func newKeySet(listed []Key, old *keySet) (*keySet, error) {
	set := &keySet{byKID: map[kid]*rootKey{}}
	for _, key := range listed {
		members := []Key{key}
		if ring, ok := key.(Ring); ok {
			members = ring.Keys()
		}
		for _, member := range members {
			if err := set.add(member, old); err != nil {
				return nil, err
			}
		}
	}
	if set.mint == nil {
		return nil, errors.New("statecodec: a key ring without a key")
	}
	return set, nil
}

func (set *keySet) add(key Key, old *keySet) error {
	if key == nil || key.ID() == "" {
		return errors.New("statecodec: a key without an id")
	}
	kid := kidOf(key.ID())
	if other := set.byKID[kid]; other != nil {
		if other.ID() == key.ID() {
			return fmt.Errorf("statecodec: key %s is listed twice", key.ID())
		}
		return fmt.Errorf("statecodec: keys %s and %s have the same short id %x: replace one", other.ID(), key.ID(), kid)
	}
	k := &rootKey{Key: key, kid: kid}
	if old != nil && old.byKID[kid] != nil && old.byKID[kid].ID() == key.ID() {
		k = old.byKID[kid]
	}
	if set.mint == nil {
		set.mint = k
	}
	set.byKID[kid] = k
	return nil
}

// mint returns the key that mints.
func (c *Codec) mint(ctx context.Context) *rootKey {
	c.reload(ctx, reloadMinting, &c.reloaded)
	return c.keys.Load().mint
}

// find returns the key with this kid, or nil, and whether it mints.
func (c *Codec) find(ctx context.Context, kid kid) (k *rootKey, mints bool) {
	set := c.keys.Load()
	if set.byKID[kid] == nil {
		// A reload of another cause may have been a moment before the key was added.
		c.reload(ctx, reloadUnknown, &c.reloadedUnknown)
		set = c.keys.Load()
	}
	k = set.byKID[kid]
	return k, k == set.mint
}

// reload reads the rings again unless last, when that was done, is only a moment ago. What
// cannot be read stays as it was.
func (c *Codec) reload(ctx context.Context, atMostEach time.Duration, last *time.Time) {
	if len(c.rings) == 0 {
		return
	}
	c.reloading.Lock()
	defer c.reloading.Unlock()
	now := c.now()
	if since := now.Sub(*last); 0 <= since && since < atMostEach {
		return
	}
	*last, c.reloaded = now, now
	for _, ring := range c.rings {
		if err := ring.Reload(ctx); err != nil {
			c.logger.Warn("state keys not read again", "key", ring.ID(), "err", err)
		}
	}
	set, err := newKeySet(c.listed, c.keys.Load())
	if err != nil {
		c.logger.Warn("state keys not read again", "err", err)
		return
	}
	c.keys.Store(set)
}
