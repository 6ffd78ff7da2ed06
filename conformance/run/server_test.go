package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// asFixture makes the test's own binary stand in for the fixture.
const asFixture = "CONFORMANCE_RUN_TEST_AS"

func TestMain(m *testing.M) {
	if as := os.Getenv(asFixture); as != "" {
		os.Exit(standIn(as))
	}
	os.Exit(m.Run())
}

// standIn answers /healthz until it is told to stop, unless its part is another.
func standIn(as string) int {
	if as == "ends at once" {
		os.Stderr.WriteString("bad settings\n")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := &http.Server{Addr: os.Getenv("THAW_ADDR"), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/die" {
			os.Stderr.WriteString("died\n")
			os.Exit(3)
		}
	})}
	go func() { _ = s.ListenAndServe() }()
	<-ctx.Done()
	if as == "stops with an error" {
		os.Stderr.WriteString("could not stop\n")
		return 1
	}
	return 0
}

func startStandIn(t *testing.T, as string) (*fixtureProcess, error) {
	t.Helper()
	t.Setenv(asFixture, as)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startFixture(t.Context(), binary)
}

func TestFixtureProcess(t *testing.T) {
	f, err := startStandIn(t, "good")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(f.url, "http://127.0.0.1:") || !strings.HasSuffix(f.url, "/mcp") {
		t.Errorf("url %q", f.url)
	}
	if err := f.stop(); err != nil {
		t.Error(err)
	}
	if resp, err := http.Get(f.url); err == nil {
		resp.Body.Close()
		t.Error("the process still answers after it was stopped")
	}
}

func TestFixtureProcessFails(t *testing.T) {
	t.Run("at its start", func(t *testing.T) {
		if _, err := startStandIn(t, "ends at once"); err == nil || !strings.Contains(err.Error(), "ended at its start") || !strings.Contains(err.Error(), "bad settings") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("by itself", func(t *testing.T) {
		f, err := startStandIn(t, "good")
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.Get(strings.TrimSuffix(f.url, "/mcp") + "/die"); err == nil {
			resp.Body.Close()
			t.Error("the dying process answered")
		}
		<-f.ended
		if err := f.stop(); err == nil || !strings.Contains(err.Error(), "ended by itself") || !strings.Contains(err.Error(), "died") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("at its end", func(t *testing.T) {
		f, err := startStandIn(t, "stops with an error")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.stop(); err == nil || !strings.Contains(err.Error(), "could not stop") {
			t.Errorf("error %v", err)
		}
	})
}

// A fixture that is not wanted any more does not outlive the attempt to start it.
func TestStartFixtureInterrupted(t *testing.T) {
	t.Setenv(asFixture, "good")
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := startFixture(ctx, binary); err == nil {
		t.Errorf("started %s on a context that has ended", f.url)
		_ = f.stop()
	}
}

func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "THAW_ADDR=:1", "THAW_CACHE=/c", "K_SERVICE=s", "PORT=1", "AWS_LAMBDA_RUNTIME_API=a", "PORTER=p"}, "127.0.0.1:2")
	if want := []string{"THAW_ADDR=127.0.0.1:2", "PATH=/bin", "PORTER=p"}; !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
}
