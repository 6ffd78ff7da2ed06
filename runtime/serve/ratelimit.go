package serve

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/thaw-mcp/thaw"
)

// maxCallers bounds the memory of one tool's limits.
const maxCallers = 10_000

// owner is a caller whatever client it uses. Anonymous callers are one.
type owner struct{ scheme, issuer, subject, tenant string }

func ownerOf(p *thaw.Principal) owner { return owner{p.Scheme, p.Issuer, p.Subject, p.Tenant} }

// rateLimit is a token bucket per caller (F-18), in this process only.
type rateLimit struct {
	perSecond rate.Limit
	burst     int
	mu        sync.Mutex
	callers   map[owner]*rate.Limiter
}

func newRateLimit(perMinute, burst int) *rateLimit {
	return &rateLimit{perSecond: rate.Limit(float64(perMinute) / 60), burst: burst, callers: map[owner]*rate.Limiter{}}
}

// take takes one call of caller, or says how long until there is one to take.
func (l *rateLimit) take(caller owner, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket := l.callers[caller]
	if bucket == nil {
		if len(l.callers) >= maxCallers {
			l.forget(now)
		}
		bucket = rate.NewLimiter(l.perSecond, l.burst)
		l.callers[caller] = bucket
	}
	r := bucket.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// forget drops the callers whose bucket is full again, since a new one is as good; if all
// are in use it drops them all rather than grow.
func (l *rateLimit) forget(now time.Time) {
	for caller, bucket := range l.callers {
		if bucket.TokensAt(now) >= float64(l.burst) {
			delete(l.callers, caller)
		}
	}
	if len(l.callers) >= maxCallers {
		clear(l.callers)
	}
}
