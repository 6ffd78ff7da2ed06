package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const goodTrace = "0af7651916cd43dd8448eb211c80319c"

// B-69, as far as handlers see it: what the context of a handler carries is what its own
// requests would send on.
var tracing = map[string]verdict{
	"B-69": {
		rules: []rule{
			{says: "first: span trace id 0af7…319c", on: []string{metaName(0)}, holds: all(status(200), complete, remoteTrace(goodTrace, ""))},
			{
				says: "all others: status 200, fresh trace id",
				on: []string{
					metaName(1), metaName(2), metaName(3), metaName(4), metaName(5), metaName(6), metaName(7),
					metaName(9), metaName(10), metaName(11), metaName(12),
				},
				holds: all(status(200), complete, noRemoteTrace),
			},
			{
				// W3C Trace Context, which the case cites, has a broken tracestate dropped alone: "Failure
				// to parse tracestate MUST NOT affect the parsing of traceparent."
				says:  "nothing malformed is passed on",
				on:    []string{metaName(8)},
				holds: all(status(200), complete, either(remoteTrace(goodTrace, ""), noRemoteTrace)),
			},
			{says: "no CR or LF in any outgoing header", holds: passesOnCleanly},
			{says: "Baggage over 8192 bytes is dropped.", on: []string{metaName(9), metaName(10), metaName(12)}, holds: noBaggage},
			{says: "no panic for object and list", on: []string{metaName(4), metaName(12)}, holds: ran("echo")},
		},
		scenes: []scene{{
			says:  []string{"With both present, one documented choice (_meta first is customary), never a mix."},
			items: []string{"HTTP traceparent header with another trace id beside a good _meta one"},
			play:  twoTraces,
		}},
	},
}

// seen is the one run of an answer's tool.
func (a *answer) seen() (run, error) {
	if len(a.ran) != 1 {
		return run{}, fmt.Errorf("%d tools ran, want 1", len(a.ran))
	}
	return a.ran[0], nil
}

// remoteTrace wants the handler to see the caller's trace.
func remoteTrace(id, state string) check {
	return func(a *answer) error {
		r, err := a.seen()
		if err != nil {
			return err
		}
		if got := r.span.TraceID().String(); got != id || !r.span.IsRemote() {
			return fmt.Errorf("the handler sees trace %s, remote %t, want %s of the caller", got, r.span.IsRemote(), id)
		}
		if got := r.span.TraceState().String(); got != state {
			return fmt.Errorf("the handler sees trace state %q, want %q", got, state)
		}
		return nil
	}
}

// noRemoteTrace wants the handler to see nothing of the caller's: its trace begins anew.
func noRemoteTrace(a *answer) error {
	r, err := a.seen()
	if err != nil {
		return err
	}
	if r.span.IsRemote() || r.span.TraceID().String() == goodTrace {
		return fmt.Errorf("the handler sees the caller's trace %s", r.span.TraceID())
	}
	if got := r.span.TraceState().String(); got != "" {
		return fmt.Errorf("the handler sees trace state %q", got)
	}
	return nil
}

// noBaggage wants the handler to see none.
func noBaggage(a *answer) error {
	r, err := a.seen()
	if err != nil {
		return err
	}
	if r.baggage.Len() > 0 {
		return fmt.Errorf("the handler sees baggage of %d bytes", len(r.baggage.String()))
	}
	return nil
}

// passesOnCleanly writes the headers that a request of the handler's own would have.
func passesOnCleanly(a *answer) error {
	r, err := a.seen()
	if err != nil {
		return err
	}
	ctx := baggage.ContextWithBaggage(trace.ContextWithSpanContext(context.Background(), r.span), r.baggage)
	carrier := propagation.MapCarrier{}
	propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}).Inject(ctx, carrier)
	for name, value := range carrier {
		if strings.ContainsAny(value, "\r\n") {
			return fmt.Errorf("outgoing header %s has a line break: %q", name, value)
		}
		if name == "baggage" && len(value) > 8192 {
			return errors.New("outgoing baggage is above 8192 bytes")
		}
	}
	return nil
}

// twoTraces sends a trace in _meta and another one in the HTTP headers: the first is the
// logical caller's, the second a hop's (O-04).
func twoTraces(t *testing.T, s *stage) {
	const hop = "00-11111111111111111111111111111111-2222222222222222-01"
	x := s.call("echo", `{"text":"x"}`, `"traceparent":"00-`+goodTrace+`-00f067aa0ba902b7-01"`)
	x.headers = append(x.headers, header{"traceparent", hop}, header{"tracestate", "hop=1"})
	s.expect(t, x, all(status(200), complete, remoteTrace(goodTrace, "")))
}
