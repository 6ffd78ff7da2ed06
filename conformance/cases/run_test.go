package cases

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// verdict is what must come of one case.
type verdict struct {
	production
	rules  []rule
	scenes []scene
}

// rule holds answers to a line that the case expects, or to words of what is right.
type rule struct {
	says  string
	on    []string // requests, by name; nil: all
	holds check
}

// scene stages what is no plain request.
type scene struct {
	says  []string
	items []string // what of the case it stages
	play  func(t *testing.T, s *stage)
}

// verdicts are all tables, one a category.
var verdicts = func() map[string]verdict {
	all := map[string]verdict{}
	for _, table := range []map[string]verdict{
		lambdaEvents, jsonRPC, protocol, headers, toolSchema, httpEdge, streaming, caching, tracing, runtimeLimits,
		multiRoundTrips, tasks, authorization,
	} {
		for id, v := range table {
			if _, twice := all[id]; twice {
				panic("two verdicts for " + id)
			}
			all[id] = v
		}
	}
	return all
}()

func TestCases(t *testing.T) {
	d := loadFile(t)
	known := map[string]bool{}
	for _, c := range d.Cases {
		known[c.ID] = true
		v, judged := verdicts[c.ID]
		t.Run(c.ID, func(t *testing.T) {
			if !judged {
				t.Fatalf("nobody has said in Go what must come of this %s case", c.Category)
			}
			for _, problem := range v.against(c) {
				t.Error(problem)
			}
			v.run(t, d, c)
		})
	}
	for _, id := range slices.Sorted(maps.Keys(verdicts)) {
		if !known[id] {
			t.Errorf("there is a verdict for %s and no case", id)
		}
	}
}

// against holds the verdict against the case: neither may have what the other lacks.
func (v *verdict) against(c *failure) (problems []string) {
	names, err := c.items()
	if err != nil {
		return []string{err.Error()}
	}
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var said, done []string
	for _, r := range v.rules {
		said = append(said, r.says)
		if r.on == nil {
			done = append(done, c.requestNames()...)
		}
		for _, name := range r.on {
			if !slices.Contains(c.requestNames(), name) {
				problem("the case has no request %q", name)
			}
		}
		done = append(done, r.on...)
	}
	for _, s := range v.scenes {
		said = append(said, s.says...)
		for _, name := range s.items {
			if !slices.Contains(names, name) {
				problem("the case tries no %q", name)
			}
		}
		done = append(done, s.items...)
	}
	for _, says := range said {
		if !c.has(says) {
			problem("the case has no words %q", says)
		}
	}
	for _, line := range c.Expect {
		if !slices.Contains(said, line) {
			problem("nothing asserts %q", line)
		}
	}
	for _, name := range names {
		if !slices.Contains(done, name) {
			problem("nothing asserts what must come of %q", name)
		}
	}
	return problems
}

// has reports whether the case tries something of that name, expects that line or has
// those words in what is right.
func (c *failure) has(text string) bool {
	names, err := c.items()
	return err == nil && (slices.Contains(names, text) || slices.Contains(c.Expect, text) || strings.Contains(c.Right, text))
}

// requestNames are the items of a case that are plain requests or events.
func (c *failure) requestNames() (names []string) {
	if c.Input.isRequest() {
		names = append(names, theRequest)
	}
	for _, r := range c.Input.Requests {
		names = append(names, r.Name)
	}
	for i := range c.Input.MetaExtraList {
		names = append(names, metaName(i))
	}
	return names
}

// run sends every request through every door that takes it, and plays the scenes.
func (v *verdict) run(t *testing.T, d *document, c *failure) {
	p := &expansion{d: d, text: map[string]string{"$JWT": goodToken("alice")}}
	s := newStage(t, p, v.production)
	if s.workers != nil {
		p.text["$TASK"] = s.waitingTask(t, s.http)
	}
	requests, err := p.requests(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range requests {
		t.Run(x.name, func(t *testing.T) {
			if x.as == "" && !x.nobody {
				x.as = v.as
			}
			if v.declares != "" {
				x = x.by(v.declares)
			}
			if x.as != "" {
				if !v.identified {
					t.Fatalf("the server does not know %s", x.as)
				}
				x.headers = append(x.headers, bearer(x.as))
			}
			for _, door := range s.doors(x) {
				t.Run(door.name(), func(t *testing.T) {
					a := s.play(t, door, x)
					for _, r := range v.rules {
						if r.on == nil || slices.Contains(r.on, x.name) {
							if err := r.holds(a); err != nil {
								t.Errorf("breaks %q: %v\n%s: %s", r.says, err, door.name(), a)
							}
						}
					}
				})
			}
		})
	}
	for _, scene := range v.scenes {
		t.Run(slices.Concat(scene.items, scene.says)[0], func(t *testing.T) { scene.play(t, s) })
	}
}
