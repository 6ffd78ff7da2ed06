package thawtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// probe counts the effects of a call's steps and says after which of them its process dies.
type probe struct {
	mu     sync.Mutex // steps may run in parallel
	steps  []string
	killAt int // after which effect, from 1; 0: never
}

var errKilled = errors.New("thawtest: the process was killed here")

// did notes an effect and reports whether the process dies of it.
func (p *probe) did(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, key)
	return len(p.steps) == p.killAt
}

func (p *probe) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.steps)
}

// Steps are the keys of the steps whose functions have run, in order: one that ran twice
// is in it twice.
func (c *Call) Steps() []string {
	c.probe.mu.Lock()
	defer c.probe.mu.Unlock()
	return slices.Clone(c.probe.steps)
}

// Shake plays a conversation undisturbed, then again and again with the process killed:
// once after each effect of a step, before anybody learns of it, and once before each answer
// reaches the client. Each time the client sends its request again, and the end must be the
// same. tool makes the tool with a fresh world around it; answers has one for every question.
//
// Of a plain call the rounds after the first are shaken: a first request that is sent again is
// another call. A task is shaken from its beginning: its worker is killed after each effect,
// after each write of the task, and before what a run ended in is written; another takes over
// when the lease has run out. Time passes by itself wherever the task waits for it.
func Shake(tb testing.TB, tool func() *thaw.Tool, args any, answers Answers, opts *Options) {
	tb.Helper()
	calm := shaken(tb, tool(), args, answers, opts, death{})
	want := calm.end()
	again := func(d death) {
		tb.Helper()
		if got := shaken(tb, tool(), args, answers, opts, d).end(); got != want {
			tb.Errorf("thawtest: %s the call ends in\n  %s\nundisturbed in\n  %s", d.when, got, want)
		}
	}
	for n, key := range calm.Steps() {
		if n >= calm.inFirst {
			again(death{effect: n + 1, when: fmt.Sprintf("killed after step %q", key)})
		}
	}
	for n, what := range calm.world.writes {
		again(death{write: n + 1, when: fmt.Sprintf("killed after %s (write %d of its task)", what, n+1)})
	}
	first := 2
	if calm.taskRound == 1 {
		first = 1
	}
	for round := first; round <= calm.rounds; round++ {
		again(death{round: round, when: fmt.Sprintf("with the answer of round %d lost", round)})
	}
}

// death is when the process of a call dies; of its numbers, from 1, one is set.
type death struct {
	effect int // after this effect of a step
	write  int // after this write of a worker
	round  int // before anybody learns what the round ended in
	when   string
}

// play is a conversation from its start to its end.
type play struct {
	*Call
	inFirst   int // steps of the first request
	taskRound int // in which the call became a task; 0: in none
}

func shaken(tb testing.TB, tool *thaw.Tool, args any, answers Answers, opts *Options, d death) *play {
	tb.Helper()
	p := &play{Call: newCall(tb, tool, args, opts)}
	p.request(nil)
	p.inFirst = p.probe.count()
	p.probe.killAt, p.world.killAt = d.effect, d.write
	if p.IsTask() {
		p.work()
	}
	for {
		if p.IsTask() && p.taskRound == 0 {
			p.taskRound = p.rounds
		}
		if d.round > 0 && p.rounds == d.round && (p.IsTask() || p.rounds > 1) {
			d.round = 0
			p.Crash()
		}
		switch {
		case p.over:
			return p
		case len(p.asked) > 0:
			p.Answer(p.said(answers))
			if p.killed {
				p.resend()
				if p.IsTask() {
					p.work()
				}
			}
		case !p.skip():
			tb.Fatalf("thawtest: the task has not ended and nothing will happen to it")
		}
	}
}

// said is an answer to everything that is asked. A task that asks a question again with other
// content numbers its key.
func (c *Call) said(answers Answers) Answers {
	c.tb.Helper()
	said := Answers{}
	for _, key := range c.Asked() {
		answer, ok := answers[key]
		if i := strings.LastIndexByte(key, '~'); !ok && i > 0 && c.IsTask() {
			answer, ok = answers[key[:i]]
		}
		if !ok {
			c.tb.Fatalf("thawtest: Shake has no answer to %q", key)
		}
		said[key] = answer
	}
	return said
}

// end is how the call ended, to be compared.
func (c *Call) end() string {
	switch {
	case c.err != nil:
		return fmt.Sprintf("error %d %s", c.err.Code, c.err.Message)
	case c.cancelled:
		return "cancelled"
	}
	raw, err := strictjson.Marshal(c.result)
	if err != nil {
		c.tb.Fatalf("thawtest: %v", err)
	}
	return string(raw)
}
