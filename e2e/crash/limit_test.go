package crash

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// A task that takes longer than any invocation of its worker has is done over several: a step
// begins only where there is time for it, and none runs twice.
func TestLongerThanItsWorker(t *testing.T) {
	const (
		reserve = 20 * time.Second // which thaw keeps of an invocation to write down what became of it
		step    = 1500 * time.Millisecond
		limit   = 2 * time.Second // so no two steps fit into one
	)
	for _, b := range slices.DeleteFunc(slices.Clone(backends), func(b backend) bool { return b.name == "SQLite" }) { // whose workers have no limit
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			p := b.start(t)(t)
			p.functionTime = reserve + limit
			p.env = append(p.env, "CRASH_STEP="+step.String())
			f := newFleet(t, p, 1, point{})
			id, err := create(t.Context(), f.url(), "long")
			if err != nil {
				t.Fatal(err)
			}
			tick := time.NewTicker(b.lookEvery)
			defer tick.Stop()
			deadline := time.After(patience)
			var v view
			for !v.ended() || v.Status == "" {
				select {
				case <-tick.C:
				case <-deadline:
					t.Fatalf("after %v: %+v", patience, v)
				}
				if v, err = advance(t.Context(), f.url(), id); err != nil && !errors.Is(err, errGone) {
					t.Fatal(err)
				}
			}
			c := p.check(t, map[string]view{id: v})
			if c.runs != len(steps) || c.again != 0 {
				t.Errorf("%+v", c)
			}
			invocations, fresh := 0, false
			for _, e := range p.events(t) {
				switch e.what {
				case "claim":
					fresh = true
				case "step":
					if !fresh {
						t.Errorf("step %s began in an invocation that had done one", e.more[0])
					}
					invocations, fresh = invocations+1, false
				}
			}
			if invocations != len(steps) {
				t.Errorf("%d invocations did %d steps", invocations, len(steps))
			}
		})
	}
}
