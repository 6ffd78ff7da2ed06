package serve

import (
	"slices"
	"strings"
	"sync"
)

// hub tells the listeners of this process what changed. The zero value is ready.
type hub struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	draining  bool
}

// listener is one subscriptions/listen stream. What happens while it is busy writing is
// kept as a set, so a slow client costs little memory and no change is lost.
type listener struct {
	lists map[string]bool // notification methods asked for
	uris  []string
	may   func(scopes []string) bool // whether its caller has them

	mu      sync.Mutex
	changed []string // list notifications to send
	updated []string // URIs to send
	closed  bool
	wake    chan struct{} // capacity 1
}

// add takes a listener in, unless there are limit of them. One that comes while the hub
// drains is closed at once.
func (h *hub) add(l *listener, limit int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		l.close()
		return true
	}
	if len(h.listeners) >= limit {
		return false
	}
	if h.listeners == nil {
		h.listeners = map[*listener]struct{}{}
	}
	h.listeners[l] = struct{}{}
	return true
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
}

func (h *hub) each(f func(*listener)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		f(l)
	}
}

func (h *hub) listChanged(notification string) {
	h.each(func(l *listener) {
		if l.lists[notification] {
			l.put(&l.changed, notification, notification)
		}
	})
}

// resourceUpdated tells of a resource that takes scopes to read.
func (h *hub) resourceUpdated(uri string, scopes []string) {
	h.each(func(l *listener) {
		if len(scopes) > 0 && !l.may(scopes) {
			return
		}
		if i := slices.IndexFunc(l.uris, func(asked string) bool { return below(uri, asked) }); i >= 0 {
			l.put(&l.updated, uri, l.uris[i])
		}
	})
}

// below reports whether uri is asked or a sub-resource of it.
func below(uri, asked string) bool {
	rest, ok := strings.CutPrefix(uri, asked)
	return ok && (rest == "" || strings.HasSuffix(asked, "/") || rest[0] == '/')
}

func (h *hub) drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	for l := range h.listeners {
		l.close()
	}
}

// maxPending bounds a set. Beyond it a change of a sub-resource is told as one of what the
// client subscribed to, which are few.
const maxPending = 100

func (l *listener) put(set *[]string, what, instead string) {
	l.mu.Lock()
	if len(*set) >= maxPending {
		what = instead
	}
	if !slices.Contains(*set, what) {
		*set = append(*set, what)
	}
	l.mu.Unlock()
	l.signal()
}

func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.signal()
}

func (l *listener) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take empties the sets.
func (l *listener) take() (changed, updated []string, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed, updated, closed = l.changed, l.updated, l.closed
	l.changed, l.updated = nil, nil
	return changed, updated, closed
}
