package lambdahost

import (
	"context"
	"encoding/base64"
	"unicode/utf8"

	"github.com/thaw-mcp/thaw/runtime/host"
)

const (
	// maxPayload is the largest response of a buffered invocation in bytes. The
	// quota table says 6 MB; this is the figure in the error of the Runtime API,
	// which refuses more with 413, whereupon the runtime loop ends the process.
	maxPayload = 6_291_556

	// maxALBPayload is the largest response that a load balancer takes from a
	// function. Its documentation says 1 MB and not which; a response between the
	// two readings would be lost to a bare 502 if the larger one were wrong.
	maxALBPayload = 1_000_000

	// maxStream is the largest body of a streamed response. The documentation says 200 MB (20 until
	// 2025), and not which.
	maxStream = 200_000_000

	// maxPrelude is the largest prelude of a streamed response, its delimiter included: an API
	// Gateway looks for that in the first 16 KB.
	maxPrelude = 16 << 10

	// headAllowance is what host.Fits reserves for everything around the body,
	// which the handler may not have set yet. Gateways refuse headers above 10 KiB.
	headAllowance = 16 << 10
)

// limit is the size that d takes, in bytes of the whole encoded answer.
func (d door) limit() int {
	if d == albSingle || d == albMulti {
		return maxALBPayload
	}
	return maxPayload
}

// withStreamLimit announces the limit of a stream to the handler. Nothing in it is escaped.
func withStreamLimit(ctx context.Context) context.Context {
	return host.WithResponseLimit(ctx, maxStream, func(body []byte) bool { return len(body) <= maxStream })
}

// withLimit announces d's limit to the handler.
func (d door) withLimit(ctx context.Context) context.Context {
	if d == albSingle || d == albMulti {
		return host.WithResponseLimit(ctx, maxALBPayload, fitsALB)
	}
	return host.WithResponseLimit(ctx, maxPayload, fitsPayload)
}

func fitsALB(body []byte) bool     { return fits(body, maxALBPayload) }
func fitsPayload(body []byte) bool { return fits(body, maxPayload) }

// fits assumes a text media type, as JSON and event streams have.
func fits(body []byte, limit int) bool {
	room := limit - headAllowance
	switch {
	case len(body) > room:
		return false
	case utf8.Valid(body):
		return escapedLen(body) <= room
	default:
		return base64.StdEncoding.EncodedLen(len(body)) <= room
	}
}
