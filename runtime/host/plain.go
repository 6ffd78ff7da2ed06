package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Bounds of the plain net/http hosts. Bodies are small and answers may be long
// streams, so reading is bounded in time and writing is not.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10 // the handler has a smaller limit of its own and a better answer
)

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
		Serve: func(ctx context.Context, a App) error { return serve(ctx, a, addr, 10*time.Second) },
	}
}

// CloudRun listens on all interfaces at PORT (8080 if unset) and drains on the
// SIGTERM that ends an instance, within the 10 s that Cloud Run gives.
func CloudRun(getenv func(string) string) Host {
	port := getenv("PORT")
	if port == "" {
		port = "8080"
	}
	return Host{
		Name:      "cloudrun",
		Here:      func(getenv func(string) string) bool { return getenv("K_SERVICE") != "" },
		Facts:     Facts{Resident: true, Streaming: true},
		Ephemeral: true,
		Serve:     func(ctx context.Context, a App) error { return serve(ctx, a, ":"+port, 9*time.Second) },
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

func serve(ctx context.Context, a App, addr string, drain time.Duration) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return serveOn(ctx, a, l, drain)
}

// serveOn serves on l, which it closes, until ctx ends; then it drains.
func serveOn(ctx context.Context, a App, l net.Listener, drain time.Duration) error {
	s := &http.Server{
		Handler:           a.HTTP,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
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
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.Shutdown(stopping); err != nil {
		_ = s.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("stop: requests were still open after %s", drain)
		}
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}
