package process

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/thaw-mcp/thaw/e2e/bench/mcpcall"
)

// patience bounds one start.
const patience = 20 * time.Second

// TimeStart measures from the start of a local program to its first answered call.
func TimeStart(ctx context.Context, path string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	addr, err := FreeAddr()
	if err != nil {
		return 0, err
	}
	call := Call(addr)

	began := time.Now()
	p, err := Start(ctx, path, Serving(addr)...)
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	conn, err := p.Dial(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := conn.Write(call); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, fmt.Errorf("first answer of %s: %w", path, err)
	}
	took := time.Since(began)
	return took, mcpcall.CheckResponse(res)
}
