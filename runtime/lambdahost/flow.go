package lambdahost

import (
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// maxCollected is how much of a body is collected before it begins to stream although
	// nobody has flushed it. Until then a handler that fails can be answered for.
	maxCollected = 1 << 20

	// maxAhead is how far a handler may write ahead of the platform, which takes the first 6 MB
	// as fast as it can and the rest at 2 MB/s.
	maxAhead = 1 << 20
)

// flow is the body of a response on its way from the handler to the runtime loop.
type flow struct {
	limit int // of the body

	mu       sync.Mutex
	buf      []byte // written and not read
	size     int    // written
	cut      bool   // more was written than the platform takes
	gone     bool   // nothing more is taken
	deadline time.Time

	more chan struct{} // holds a token if something was written
	room chan struct{} // holds a token if something was read, or nothing more is taken
}

func newFlow(limit int) *flow {
	return &flow{limit: limit, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// write returns when p is on its way, at the latest when the deadline of writing has passed.
func (f *flow) write(p []byte) (n int, err error) {
	for {
		n, err = f.put(p, n)
		if err != nil || n == len(p) {
			return n, err
		}
		if err := f.waitForRoom(); err != nil {
			return n, err
		}
	}
}

// put takes of p[n:] what there is room for.
func (f *flow) put(p []byte, n int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		notify(f.room) // to whoever else waits
		return n, http.ErrHandlerTimeout
	}
	room := min(len(p)-n, max(0, maxAhead-len(f.buf)))
	if f.size+room > f.limit {
		f.cut = true
		return n, &tooLargeError{size: f.size + len(p) - n, limit: f.limit}
	}
	f.buf = append(f.buf, p[n:n+room]...)
	f.size += room
	notify(f.more)
	return n + room, nil
}

func (f *flow) waitForRoom() error {
	f.mu.Lock()
	deadline := f.deadline
	f.mu.Unlock()
	if deadline.IsZero() {
		<-f.room
		return nil
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-f.room:
		return nil
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

func (f *flow) setDeadline(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deadline = t
}

// read moves what there is into p and does not wait.
func (f *flow) read(p []byte) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = copy(p, f.buf)
	if f.buf = f.buf[n:]; len(f.buf) == 0 {
		f.buf = nil
	}
	if n > 0 {
		notify(f.room)
	}
	return n
}

// end has every further write fail. What was written can still be read.
func (f *flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	notify(f.room)
}

// close says that nobody reads any more.
func (f *flow) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone, f.buf = true, nil
	notify(f.room)
}

// state is how many bytes were written, and whether that is all that was meant to be.
func (f *flow) state() (size int, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size, f.cut
}

// closed reports whether nothing more is taken.
func (f *flow) closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}
