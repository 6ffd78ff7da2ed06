package journal

import "context"

// Probe watches the steps of a run. An error that it returns ends the run there, as the
// death of its process would: nothing further starts or is recorded.
type Probe interface {
	// Did is told when the function of step key has returned and nothing is recorded yet.
	Did(key string) error
}

type probeKey struct{}

// WithProbe returns a context in which runs are watched by p.
func WithProbe(ctx context.Context, p Probe) context.Context {
	return context.WithValue(ctx, probeKey{}, p)
}

func probe(ctx context.Context, key string) error {
	if p, ok := ctx.Value(probeKey{}).(Probe); ok {
		return p.Did(key)
	}
	return nil
}
