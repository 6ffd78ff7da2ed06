package serve

import (
	"context"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// maxBaggage is the W3C limit for a baggage value in bytes.
const maxBaggage = 8192

// withTrace puts the caller's trace context and baggage into ctx. Malformed values are
// ignored, as W3C asks of receivers, and tracestate counts only beside a good
// traceparent (O-01 to O-05).
func withTrace(ctx context.Context, m *meta) context.Context {
	if m.traceparent != nil {
		parent, _ := strictjson.String(m.traceparent)
		state, _ := strictjson.String(m.tracestate)
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{mcp.MetaTraceParent: parent, mcp.MetaTraceState: state})
	}
	if m.baggage != nil {
		if text, ok := strictjson.String(m.baggage); ok && len(text) <= maxBaggage {
			if b, err := baggage.Parse(text); err == nil {
				ctx = baggage.ContextWithBaggage(ctx, b)
			}
		}
	}
	return ctx
}

// traceID is the id of the trace that ctx belongs to, or "".
func traceID(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.HasTraceID() {
		return s.TraceID().String()
	}
	return ""
}
