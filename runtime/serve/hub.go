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
// kept as a set, so a slow client costs no memory and no change is lost.
type listener struct {
	lists map[string]bool // notification methods asked for
	uris  []string

	mu      sync.Mutex
	changed []string // list notifications to send
	updated []string // URIs to send
	closed  bool
	wake    chan struct{} // capacity 1
}

func (h *hub) add(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		l.close()
		return
	}
	if h.listeners == nil {
		h.listeners = map[*listener]struct{}{}
	}
	h.listeners[l] = struct{}{}
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
			l.put(&l.changed, notification)
		}
	})
}

func (h *hub) resourceUpdated(uri string) {
	h.each(func(l *listener) {
		if slices.ContainsFunc(l.uris, func(asked string) bool { return below(uri, asked) }) {
			l.put(&l.updated, uri)
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

func (l *listener) put(set *[]string, what string) {
	l.mu.Lock()
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
