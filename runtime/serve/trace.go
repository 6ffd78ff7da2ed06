package serve

import (
	"context"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"

	"github.com/thaw-mcp/thaw/mcp"
)

// maxBaggage is the W3C limit for a baggage value in bytes.
const maxBaggage = 8192

// withTrace puts the caller's trace context and baggage into ctx. Malformed values are
// ignored, as W3C asks of receivers, and tracestate counts only beside a good
// traceparent (O-01 to O-05).
func withTrace(ctx context.Context, m *meta) context.Context {
	if m.traceparent != nil {
		parent, _ := stringOf(m.traceparent)
		state, _ := stringOf(m.tracestate)
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{mcp.MetaTraceParent: parent, mcp.MetaTraceState: state})
	}
	if m.baggage != nil {
		if text, ok := stringOf(m.baggage); ok && len(text) <= maxBaggage {
			if b, err := baggage.Parse(text); err == nil {
				ctx = baggage.ContextWithBaggage(ctx, b)
			}
		}
	}
	return ctx
}
