// Package load puts load on a local server over loopback connections.
package load

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/thaw-mcp/thaw/e2e/bench/mcpcall"
	"github.com/thaw-mcp/thaw/e2e/bench/process"
)

// connections is enough to keep one core busy: there is always a request waiting.
const connections = 8

// Rate is what a server did.
type Rate struct {
	PerSecond    float64 // requests per second of wall time
	PerCPUSecond float64 // requests per second of the server's processor time
}

// Measure runs a local program on one core and calls it on several connections for the
// given time, after a fifth of it as warm-up.
func Measure(ctx context.Context, path string, d time.Duration) (Rate, error) {
	ctx, cancel := context.WithTimeout(ctx, d+d/5+20*time.Second)
	defer cancel()
	addr, err := process.FreeAddr()
	if err != nil {
		return Rate{}, err
	}
	p, err := process.Start(ctx, path, append(process.Serving(addr), "GOMAXPROCS=1")...)
	if err != nil {
		return Rate{}, err
	}
	defer p.Stop()

	var done atomic.Int64
	var stop atomic.Bool
	var workers sync.WaitGroup
	errs := make(chan error, connections)
	for range connections {
		workers.Go(func() {
			if err := work(ctx, p, addr, &done, &stop); err != nil {
				errs <- err
			}
		})
	}
	rate, err := watch(ctx, p, &done, d, errs)
	stop.Store(true)
	workers.Wait()
	return rate, err
}

// watch counts what is done between two moments.
func watch(ctx context.Context, p *process.Process, done *atomic.Int64, d time.Duration, errs <-chan error) (Rate, error) {
	wait := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case err := <-errs:
			return err
		case <-p.Ended():
			return p.Died()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := wait(d / 5); err != nil {
		return Rate{}, err
	}
	began, n := time.Now(), done.Load()
	cpu, err := p.CPU()
	if err != nil {
		return Rate{}, err
	}
	if err := wait(d); err != nil {
		return Rate{}, err
	}
	took, n2 := time.Since(began), done.Load()
	cpu2, err := p.CPU()
	if err != nil {
		return Rate{}, err
	}
	if n2 == n || cpu2 == cpu {
		return Rate{}, errors.New("the server did nothing")
	}
	served := float64(n2 - n)
	return Rate{served / took.Seconds(), served / (cpu2 - cpu).Seconds()}, nil
}

// work calls on one connection until it is told to stop. The first answer is checked
// whole, the others by status and length.
func work(ctx context.Context, p *process.Process, addr string, done *atomic.Int64, stop *atomic.Bool) error {
	conn, err := p.Dial(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	call := process.Call(addr)
	r := bufio.NewReader(conn)
	for first := true; !stop.Load(); first = false {
		if _, err := conn.Write(call); err != nil {
			return err
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		if first {
			if err := mcpcall.CheckResponse(res); err != nil {
				return err
			}
			continue
		}
		n, err := io.Copy(io.Discard, res.Body)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK || n == 0 {
			return errors.New("an answer without a result under load: " + res.Status)
		}
		done.Add(1)
	}
	return nil
}
