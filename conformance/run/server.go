package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	startTime = 15 * time.Second // until the fixture answers
	stopTime  = 12 * time.Second // until it has ended; its own bound is 10 s
)

// fixtureProcess is a running fixture server.
type fixtureProcess struct {
	url   string
	cmd   *exec.Cmd
	log   *bytes.Buffer // to be read after ended
	ended chan struct{} // closed when the process is gone
	err   error         // how it ended
}

func buildFixture(ctx context.Context, root, folder string) (string, error) {
	binary := filepath.Join(folder, "fixture")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./conformance/server")
	build.Dir = root
	interruptible(build)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the fixture: %w\n%s", err, out)
	}
	return binary, nil
}

// startFixture serves the fixture on a free loopback port, with env added to its environment, and
// returns once it answers.
func startFixture(ctx context.Context, binary string, env ...string) (*fixtureProcess, error) {
	// Between finding a port and using it somebody else may take it.
	const attempts = 3
	for i := 1; ; i++ {
		f, err := tryFixture(ctx, binary, env)
		if err == nil || i == attempts || ctx.Err() != nil {
			return f, err
		}
	}
}

func tryFixture(ctx context.Context, binary string, env []string) (*fixtureProcess, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	f := &fixtureProcess{url: "http://" + addr + "/mcp", log: new(bytes.Buffer), ended: make(chan struct{})}
	// Not bound to ctx: stop ends it in every case, and in order.
	f.cmd = exec.Command(binary)
	f.cmd.Env = append(environment(os.Environ(), addr), env...)
	f.cmd.Dir = filepath.Dir(binary) // its store and its state key lie there
	f.cmd.Stdout, f.cmd.Stderr = f.log, f.log
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		f.err = f.cmd.Wait()
		close(f.ended)
	}()
	if err := f.answers(ctx, "http://"+addr+"/healthz"); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	return f, nil
}

// environment is base without what would make the fixture read settings meant for
// another program, or believe that it is somewhere else.
func environment(base []string, addr string) []string {
	env := []string{"THAW_ADDR=" + addr}
	for _, pair := range base {
		name, _, _ := strings.Cut(pair, "=")
		switch {
		case strings.HasPrefix(name, "THAW_"), strings.HasPrefix(name, "AWS_LAMBDA_"), name == "K_SERVICE", name == "PORT":
		default:
			env = append(env, pair)
		}
	}
	return env
}

func freeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// answers waits until a GET of url is answered with 200.
func (f *fixtureProcess) answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(r); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-f.ended:
			return errors.New("the fixture ended at its start")
		case <-ctx.Done():
			return fmt.Errorf("the fixture does not answer: %w", ctx.Err())
		case <-again.C:
		}
	}
}

// stop ends the process and returns once it is gone. The error says that it ended by
// itself before, or not in order, with the end of its log.
func (f *fixtureProcess) stop() error {
	select {
	case <-f.ended:
		return fmt.Errorf("the fixture ended by itself (%v); its log ends with\n%s", f.err, tail(f.log.String()))
	default:
	}
	// On an error the process is gone, which ended tells.
	_ = f.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(stopTime, func() { _ = f.cmd.Process.Kill() })
	defer late.Stop()
	<-f.ended
	if f.err != nil {
		return fmt.Errorf("the fixture did not stop in order (%v); its log ends with\n%s", f.err, tail(f.log.String()))
	}
	return nil
}
