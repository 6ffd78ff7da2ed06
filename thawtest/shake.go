package thawtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// probe counts the effects of a call's steps and kills the process after one of them.
type probe struct {
	mu     sync.Mutex // steps may run in parallel
	steps  []string
	killAt int // after which effect, from 1; 0: never
	armed  bool
	killed bool
}

var errKilled = errors.New("thawtest: the process was killed here")

// Did implements journal.Probe.
func (p *probe) Did(key string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, key)
	if p.killed || p.killAt > 0 && len(p.steps) == p.killAt && p.armed {
		p.killed = true
		return errKilled
	}
	return nil
}

// Steps are the keys of the steps whose functions have run, in order: one that ran twice
// is in it twice.
func (c *Call) Steps() []string { return slices.Clone(c.probe.steps) }

// Shake plays a conversation undisturbed, then again and again with the process killed:
// once after each effect of a step, before anybody learns of it, and once before each answer
// reaches the client. Each time the client sends its request again, and the end must be the
// same. tool makes the tool with a fresh world around it; answers has one for every question.
//
// Of a plain call the rounds after the first are shaken: a first request that is sent again is
// another call.
func Shake(tb testing.TB, tool func() *thaw.Tool, args any, answers Answers, opts *Options) {
	tb.Helper()
	var inFirst int // steps of the first round
	play := func(killAt, loseRound int) (*Call, string) {
		c := newCall(tb, tool(), args, opts)
		c.send(nil)
		inFirst = len(c.probe.steps)
		c.probe.killAt, c.probe.armed = killAt, true
		for !c.Done() {
			said := Answers{}
			for _, key := range c.Asked() {
				answer, ok := answers[key]
				if !ok {
					tb.Fatalf("thawtest: Shake has no answer to %q", key)
				}
				said[key] = answer
			}
			c.Answer(said)
			if c.probe.killed {
				c.probe.killed, c.probe.killAt = false, 0
				c.resend()
			}
			if c.rounds == loseRound {
				c.resend()
			}
		}
		return c, c.end()
	}
	calm, want := play(0, 0)
	for n := inFirst + 1; n <= len(calm.probe.steps); n++ {
		if _, got := play(n, 0); got != want {
			tb.Errorf("thawtest: killed after step %q the call ends in\n  %s\nundisturbed in\n  %s", calm.probe.steps[n-1], got, want)
		}
	}
	for round := 2; round <= calm.rounds; round++ {
		if _, got := play(0, round); got != want {
			tb.Errorf("thawtest: with the answer of round %d lost the call ends in\n  %s\nundisturbed in\n  %s", round, got, want)
		}
	}
}

// end is how the call ended, to be compared.
func (c *Call) end() string {
	if c.err != nil {
		return fmt.Sprintf("error %d %s", c.err.Code, c.err.Message)
	}
	raw, err := strictjson.Marshal(c.result)
	if err != nil {
		c.tb.Fatalf("thawtest: %v", err)
	}
	return string(raw)
}
