package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	rememberFor   = time.Minute
	maxRemembered = 1024 // tokens a key; 32 bytes each and a time
)

// verified remembers which tokens a key has verified, by their digests: a client sends one
// token with many requests, and a signature costs more than the rest of a call. Only the
// signature is remembered. Claims and times are judged every time, and the memory belongs to
// the key, so it goes when the key goes. The zero value is empty; it is safe for concurrent use.
type verified struct {
	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time
}

func (v *verified) has(digest [sha256.Size]byte, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return now.Before(v.until[digest])
}

func (v *verified) add(digest [sha256.Size]byte, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.until) >= maxRemembered {
		for d, until := range v.until {
			if !now.Before(until) {
				delete(v.until, d)
			}
		}
		if len(v.until) >= maxRemembered {
			clear(v.until)
		}
	}
	if v.until == nil {
		v.until = make(map[[sha256.Size]byte]time.Time)
	}
	v.until[digest] = now.Add(rememberFor)
}
