// Package process builds the bench's programs and runs them as processes of their own.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/thaw-mcp/thaw/e2e/bench/mcpcall"
)

const commands = "github.com/thaw-mcp/thaw/e2e/bench/cmd/"

// Build builds commands of the bench as they would be deployed: static, stripped,
// without paths. It returns the path of each in dir.
func Build(ctx context.Context, dir string, names ...string) error {
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-tags=lambda.norpc", "-o", dir + string(filepath.Separator)}
	for _, name := range names {
		args = append(args, commands+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Process is a running program.
type Process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{}
}

// Start runs a program with nothing in its environment but env.
func Start(ctx context.Context, path string, env ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, path), ended: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // that it ends is known; how does not matter
		close(p.ended)
	}()
	return p, nil
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Stop ends the process and waits for its end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.ended
}

// Died is the error for a process that was not supposed to end; call it after Ended.
func (p *Process) Died() error {
	return fmt.Errorf("%s ended: %v: %s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, p.stderr.Bytes())
}

// CPU is the processor time that the process has used.
func (p *Process) CPU() (time.Duration, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "stat"))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything; utime and stime are the 12th and 13th
	// fields behind it, in ticks of 10 ms.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc stat has %d fields", len(fields))
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// FreeAddr is an address of this machine that nobody listened on a moment ago.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Dial connects to a process that is about to listen, as soon as it does. It polls
// without pause: a pause would be most of what is measured.
func (p *Process) Dial(ctx context.Context, addr string) (net.Conn, error) {
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		select {
		case <-p.ended:
			return nil, p.Died()
		case <-ctx.Done():
			return nil, fmt.Errorf("nobody listens on %s: %w", addr, ctx.Err())
		default:
		}
	}
}

// Serving is the environment in which any of the local programs listens on addr.
func Serving(addr string) []string { return []string{"BENCH_ADDR=" + addr, "THAW_ADDR=" + addr} }

// Call is the request as bytes on the wire of a connection to addr.
func Call(addr string) []byte {
	var b bytes.Buffer
	if err := mcpcall.NewRequest(addr).Write(&b); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}
