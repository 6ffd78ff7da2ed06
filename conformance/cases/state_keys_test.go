package cases

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/conformance/fixture"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/awskit"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
)

// stateKey is a key that any instance can have: its secret is made of its name.
type stateKey string

func (k stateKey) ID() string { return "cases:" + string(k) }

func (k stateKey) MAC(_ context.Context, message []byte) ([]byte, error) {
	h := hmac.New(sha256.New, []byte("secret of "+k))
	h.Write(message)
	return h.Sum(nil), nil
}

// sealingWith has the first key seal, and all open.
func sealingWith(names ...stateKey) func(*serve.Options) {
	return func(o *serve.Options) {
		o.StateKeys = nil
		for _, name := range names {
			o.StateKeys = append(o.StateKeys, name)
		}
	}
}

// instances starts processes of one server: they have nothing in common but the counter.
func instances(t *testing.T, p *expansion) (start func(options ...func(*serve.Options)) *stage) {
	tools := fixture.New().Server().Tools
	return func(options ...func(*serve.Options)) *stage {
		return newStage(t, p, production{
			server: func(s *thaw.Server) { s.Tools = tools },
			options: func(o *serve.Options) {
				for _, set := range options {
					set(o)
				}
			},
		})
	}
}

// accept is a user's yes to transfer.
const accept = `"approve":{"action":"accept"}`

var (
	transferred = all(status(200), complete, ran("transfer"))
	startAgain  = all(status(200, 400), code(mcp.CodeInvalidParams), oneMessage, nothingRan, func(a *answer) error {
		if message := a.final().Error.Message; !strings.Contains(message, "start the call again") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
)

// rotatedKeys takes a state from every door of the instance that made it to every door of
// others, each of them cold.
func rotatedKeys(t *testing.T, s *stage) {
	start := instances(t, s.expansion)
	call := s.call("transfer", `{"to":"A","amount":10}`, "").by(canFillForms)
	mint := func(t *testing.T, on *stage) (states []string) {
		for _, d := range on.doors(call) {
			states = append(states, jsonText(on.suspend(t, d, call, "approve")))
		}
		return states
	}
	retry := func(t *testing.T, states []string, holds check, adds int64, keys ...stateKey) {
		if len(states) == 0 {
			t.Fatal("nothing was minted")
		}
		for _, state := range states {
			for i := range states {
				cold := start(sealingWith(keys...))
				cold.expectAt(t, cold.doors(call)[i], call.with(state, accept).adding(adds), holds)
			}
		}
	}
	var states []string
	t.Run("instance 1 mints S under key k1", func(t *testing.T) { states = mint(t, start(sealingWith("k1"))) })
	t.Run("instance 2 (cold, same configuration) receives the retry", func(t *testing.T) { retry(t, states, transferred, 10, "k1") })
	t.Run("keys rotated: k2 mints, k1 still listed; retry S", func(t *testing.T) {
		retry(t, states, transferred, 10, "k2", "k1")
		// Instances that list both keys understand each other, whichever seals.
		later := mint(t, start(sealingWith("k2", "k1")))
		retry(t, later, transferred, 10, "k1", "k2")
		retry(t, later, transferred, 10, "k2")
		retry(t, later, startAgain, 0, "k1")
	})
	t.Run("k1 removed; retry S", func(t *testing.T) { retry(t, states, startAgain, 0, "k2") })
}

// expiredState has the clocks of cold instances before and after a state's time, which may
// end on another day than it began.
func expiredState(t *testing.T, s *stage) {
	start := instances(t, s.expansion)
	call := s.call("transfer", `{"to":"A","amount":10}`, "").by(canFillForms)
	for _, ttl := range []time.Duration{0, 24 * time.Hour} { // 0: an hour
		lives := max(ttl, time.Hour)
		life := func(o *serve.Options) { o.StateTTL = ttl }
		first := start(life)
		for i, d := range first.doors(call) {
			state := jsonText(first.suspend(t, d, call, "approve"))
			for _, test := range []struct {
				after time.Duration
				holds check
				adds  int64
			}{
				{lives - time.Minute, transferred, 10},
				{lives + time.Second, startAgain, 0},
			} {
				clock := func(o *serve.Options) { o.Now = func() time.Time { return time.Now().Add(test.after) } }
				later := start(life, clock, sealingWith("k2", "k1"))
				later.expectAt(t, later.doors(call)[i], call.with(state, accept).adding(test.adds), test.holds)
			}
		}
	}
}

// noKey starts a server whose operator forgot the key: from settings where nothing stays
// from one instance to the next, and from code, where it can serve all that does not ask.
func noKey(t *testing.T, s *stage) {
	for place, sign := range map[string]string{"lambda": "AWS_LAMBDA_RUNTIME_API", "cloudrun": "K_SERVICE"} {
		t.Run(place, func(t *testing.T) {
			settings := map[string]string{sign: "x", "THAW_AUTH": "none", "THAW_STORE": "none"}
			ctx, stop := context.WithCancel(t.Context())
			stop() // a server that starts all the same ends at once
			err := serve.Run(ctx, fixture.New().Server(), func(name string) string { return settings[name] }, awskit.Kit())
			var bad *serve.BadSettingsError
			if !errors.As(err, &bad) || len(bad.Problems) != 1 || !strings.Contains(bad.Problems[0], "THAW_STATE_KEY") {
				t.Errorf("the start ends with %v, want one problem, with THAW_STATE_KEY", err)
			}
		})
	}
	start := instances(t, s.expansion)
	call := s.call("transfer", `{"to":"A","amount":10}`, "").by(canFillForms)
	keyed, keyless := start(), start(sealingWith())
	for i, d := range keyless.doors(call) {
		keyless.expectAt(t, d, call, all(no5xx, code(mcp.CodeInternalError), oneMessage, func(a *answer) error {
			if !strings.Contains(a.log, "THAW_STATE_KEY") {
				return fmt.Errorf("the log does not say what is missing: %s", a.log)
			}
			return nil
		}))
		state := keyed.suspend(t, keyed.doors(call)[i], call, "approve")
		keyless.expectAt(t, d, call.with(jsonText(state), accept), startAgain)
		keyless.expectAt(t, d, keyless.call("echo", `{"text":"x"}`, ""), all(status(200), complete, text("x")))
	}
}

// keyService is a stand-in for KMS.
type keyService struct {
	stateKey
	limit  int  // of a message, in bytes
	denies bool // what it says to a longer one counts as a denial, not as an outage

	mu      sync.Mutex
	longest int
	calls   int
}

// kmsLimit is what KMS takes.
const kmsLimit = 4096

func (k *keyService) MAC(ctx context.Context, message []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	k.longest = max(k.longest, len(message))
	if len(message) <= k.limit {
		return k.stateKey.MAC(ctx, message)
	}
	err := fmt.Errorf("ValidationException: 1 validation error detected: Value at 'message' failed to satisfy constraint: "+
		"Member must have length less than or equal to %d", k.limit)
	if k.denies {
		return nil, fmt.Errorf("%w: %w", statecodec.ErrKeyDenied, err)
	}
	return nil, err
}

// largeState has tools keep more than a key service would take, up to more than a state may
// hold. keep_state keeps in one step and adds 1 to the counter in the next.
func largeState(t *testing.T, s *stage) {
	key := &keyService{stateKey: "kms", limit: kmsLimit}
	s = newStage(t, s.expansion, production{options: func(o *serve.Options) { o.StateKeys = []statecodec.Key{key} }})
	keep := func(n int) *exchange {
		return s.call("keep_state", fmt.Sprintf(`{"bytes":%d}`, n), "").by(canFillForms)
	}
	for _, n := range []int{4096, 4097, 20000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			for _, d := range s.doors(keep(n)) {
				a := s.play(t, d, keep(n).adding(1))
				if err := all(asks("go_on", mcp.MethodElicit), shortHeaders)(a); err != nil {
					t.Fatalf("%v\n%s: %s", err, d.name(), a)
				}
				state := unquoted(a.result("requestState"))
				if len(state) < n {
					t.Errorf("%s: a state of %d characters cannot have %d bytes in it", d.name(), len(state), n)
				}
				// Both steps are done: they are not done again.
				s.expectAt(t, d, keep(n).with(jsonText(state), `"go_on":{"action":"accept"}`),
					all(status(200), complete, text(fmt.Sprintf("kept %d bytes", n)), ran("keep_state"), shortHeaders))
			}
		})
	}
	t.Run("300000", func(t *testing.T) {
		const size = 300_000
		s.expect(t, keep(size), all(no5xx, code(mcp.CodeInternalError), oneMessage, ran("keep_state"), func(a *answer) error {
			message, said := a.final().Error.Message, false
			for _, digits := range numbers.FindAllString(message, -1) {
				n, err := strconv.Atoi(digits)
				said = said || err == nil && n >= size && n < size+100
			}
			if !said || !strings.Contains(message, `step "keep"`) || len(a.body) > 1000 {
				return fmt.Errorf("%q does not say that step keep has some %d bytes", message, size)
			}
			return nil
		}))
	})
	key.mu.Lock()
	defer key.mu.Unlock()
	const most = 100 // no state is so short
	if key.calls == 0 || key.longest > most {
		t.Errorf("the key service was asked %d times, for up to %d bytes", key.calls, key.longest)
	}
}

// shortHeaders wants no header that has room for a state, in whatever form.
func shortHeaders(a *answer) error {
	const most = 100
	for name, values := range a.header {
		for _, value := range values {
			if len(value) > most {
				return fmt.Errorf("header %s has %d bytes: %.100q", name, len(value), value)
			}
		}
	}
	return nil
}

// keyServiceRefuses has a key service that takes nothing: its words are for the log. That
// no answer has them is asserted of every answer.
func keyServiceRefuses(t *testing.T, s *stage) {
	start := instances(t, s.expansion)
	with := func(key *keyService) *stage {
		return start(func(o *serve.Options) { o.StateKeys = []statecodec.Key{key} })
	}
	call := s.call("transfer", `{"to":"A","amount":10}`, "").by(canFillForms)
	good := with(&keyService{stateKey: "kms", limit: kmsLimit})
	for i, d := range good.doors(call) {
		state := jsonText(good.suspend(t, d, call, "approve"))
		for _, denies := range []bool{true, false} {
			refusing := with(&keyService{stateKey: "kms", denies: denies})
			for _, x := range []*exchange{call.with(state, accept), call} {
				refusing.expectAt(t, refusing.doors(call)[i], x, all(code(mcp.CodeInternalError), oneMessage, func(a *answer) error {
					if !strings.Contains(a.log, "ValidationException") {
						return fmt.Errorf("the log does not say what is wrong: %s", a.log)
					}
					return nil
				}))
			}
		}
	}
}
