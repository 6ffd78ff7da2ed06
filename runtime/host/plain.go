package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// bounds are the times and sizes of a plain net/http server. Requests are small and
// answers may be long streams, so reading is bounded in time and writing is not.
type bounds struct {
	readHeader, read, idle time.Duration
	drain                  time.Duration // from the order to stop to its end
	headerBytes            int           // the handler has a smaller limit of its own and a better answer
}

// answerTime is how long before the end of the drain open requests are told. Shutdown looks
// every half second whether they have ended.
const answerTime = 1200 * time.Millisecond

var usual = bounds{readHeader: 10 * time.Second, read: 60 * time.Second, idle: 120 * time.Second, drain: 10 * time.Second, headerBytes: 64 << 10}

// DefaultAddr is where Local listens without THAW_ADDR.
const DefaultAddr = "localhost:8080"

// Local listens on THAW_ADDR, by default on loopback. It stops within 10 s of
// the end of its context, requests in flight included.
func Local(getenv func(string) string) Host {
	addr := getenv("THAW_ADDR")
	if addr == "" {
		addr = DefaultAddr
	}
	return Host{
		Name:  "local",
		Here:  func(func(string) string) bool { return true },
		Facts: Facts{Resident: true, Streaming: true, Loopback: isLoopback(addr)},
		Serve: func(ctx context.Context, a App) error { return serve(ctx, a, addr, usual) },
	}
}

// CloudRun is not resident: there are several instances, and each of them sleeps between
// requests. It listens on all interfaces at PORT (8080 if unset) and drains on the
// SIGTERM that ends an instance, within the 10 s that Cloud Run gives.
func CloudRun(getenv func(string) string) Host {
	port := getenv("PORT")
	if port == "" {
		port = "8080"
	}
	return Host{
		Name:      "cloudrun",
		Here:      func(getenv func(string) string) bool { return getenv("K_SERVICE") != "" },
		Facts:     Facts{Streaming: true},
		Ephemeral: true,
		Serve: func(ctx context.Context, a App) error {
			b := usual
			b.drain = 9 * time.Second // the platform kills after 10
			return serve(ctx, a, ":"+port, b)
		},
	}
}

// isLoopback reports whether only this machine can reach addr. A name other than
// localhost counts as not loopback: what it resolves to is not ours to know.
func isLoopback(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if name == "localhost" {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func serve(ctx context.Context, a App, addr string, b bounds) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return b.serve(ctx, a, l)
}

// serve serves on l, which it closes, until ctx ends; then it drains.
func (b bounds) serve(ctx context.Context, a App, l net.Listener) error {
	// Open requests hear of the end a little before it, so that they can still answer.
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	s := &http.Server{
		BaseContext:       func(net.Listener) context.Context { return requests },
		Handler:           a.HTTP,
		ReadHeaderTimeout: b.readHeader,
		ReadTimeout:       b.read,
		IdleTimeout:       b.idle,
		MaxHeaderBytes:    b.headerBytes,
		ErrorLog:          slog.NewLogLogger(a.Log().Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	if a.Started != nil {
		a.Started(l.Addr())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	if a.Drain != nil {
		a.Drain()
	}
	// ctx is over; the requests still open get their own time.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.drain)
	defer cancel()
	defer time.AfterFunc(b.drain-min(answerTime, b.drain*2/3), func() { cut(ErrStopping) }).Stop()
	if err := s.Shutdown(stopping); err != nil {
		_ = s.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("stop: requests were still open after %s", b.drain)
		}
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}
