package cold

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/emulator"
	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/localkms"
	"github.com/thaw-mcp/thaw/internal/gatewaysim"
)

// instance is a process with a door of its own to the key service.
type instance struct {
	url string
	*localkms.Door
}

func start(t *testing.T, keys *localkms.Service, arn string) instance {
	t.Helper()
	door := keys.Door(t)
	return instance{serve(t, append(door.Env(), "THAW_STATE_KEY=awskms:"+arn)...), door}
}

// calls wants so many calls of the key service since the last time.
func (i instance) calls(t *testing.T, what string, want int64) {
	t.Helper()
	if got := i.Calls(); got != want {
		t.Errorf("%s: %d calls of the key service, want %d", what, got, want)
	}
}

// Processes that share nothing but the ARN of a key (B-36). Each asks the key service once.
func TestTurnsWithKMS(t *testing.T) {
	keys := localkms.Start(t)
	arn := keys.NewKey(t)
	both := []instance{start(t, keys, arn), start(t, keys, arn)}
	for i := range both {
		both[i].calls(t, "starting", 0)
	}
	turns := func(round int) string { return both[round%2].url }
	states := conversation(t, turns)
	for i := range both {
		both[i].calls(t, "a cold process", 1)
	}
	for range 100 {
		conversation(t, turns)
	}
	for i := range both {
		both[i].calls(t, "a warm process", 0)
	}

	t.Run("each round a process of its own", func(t *testing.T) {
		var fresh []instance
		conversation(t, func(int) string {
			fresh = append(fresh, start(t, keys, arn))
			return fresh[len(fresh)-1].url
		})
		for i := range fresh {
			fresh[i].calls(t, fmt.Sprintf("the process of round %d", i+1), 1)
		}
	})
	t.Run("another key", func(t *testing.T) {
		other := start(t, keys, keys.NewKey(t))
		opensNothing(t, other.url, states)
		other.calls(t, "states under another key", 0)
	})
	t.Run("another host", func(t *testing.T) {
		door := keys.Door(t)
		function := emulator.Start(t, fixture.Build(t), append(door.Env(), "THAW_AUTH=none", "THAW_STORE=none", "THAW_STATE_KEY=awskms:"+arn)...)
		api := httptest.NewServer(gatewaysim.HTTPAPI(gatewaysim.Buffered(function.Invoke), nil))
		defer api.Close()
		for _, lambda := range []int{1, 0} { // the rounds that Lambda has
			conversation(t, func(round int) string {
				if round%2 == lambda {
					return api.URL + "/mcp"
				}
				return both[0].url
			})
		}
		instance{Door: door}.calls(t, "a function", 1)
	})
}

// What a client forges buys no call of the key service.
func TestForgedStates(t *testing.T) {
	keys := localkms.Start(t)
	server := start(t, keys, keys.NewKey(t))
	first := play(t, server.url, 0, "")
	server.calls(t, "a cold process", 1)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(first.state, "t1."))
	if err != nil {
		t.Fatal(err)
	}

	// 4 bytes name the key, 4 the day; the rest nobody can make.
	flood(t, server.url, 20_000, func(r *rand.Rand) []byte {
		forged := bytes.Clone(raw)
		if r.IntN(2) == 0 {
			forged[8+r.IntN(len(forged)-8)] ^= byte(1 + r.IntN(255))
		} else {
			binary.BigEndian.PutUint64(forged, r.Uint64())
		}
		return forged
	})
	server.calls(t, "20,000 forged states", 0)

	// The days on which a state can have been sealed that is still good cost a call each, once.
	today := binary.BigEndian.Uint32(raw[4:])
	flood(t, server.url, 5_000, func(r *rand.Rand) []byte {
		forged := bytes.Clone(raw)
		binary.BigEndian.PutUint32(forged[4:], today-50+r.Uint32N(100))
		forged[8] ^= 1
		return forged
	})
	if n := server.Calls(); n > 3 {
		t.Errorf("5,000 forged states of other days: %d calls of the key service, want at most 3", n)
	}
	if a := play(t, server.url, 1, first.state); !strings.Contains(a.text, rounds[1].want) {
		t.Errorf("the call does not go on: %s", a.text)
	}
}

// flood sends n forged states over many connections, each of which has to be refused.
func flood(t *testing.T, url string, n int64, forge func(*rand.Rand) []byte) {
	t.Helper()
	const connections = 32
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	const place = "PLACE OF THE STATE"
	before, after, _ := bytes.Cut(request{tool: tool, answers: rounds[1].answers, state: place}.body(t), []byte(place))
	begin := time.Now()
	var sent atomic.Int64
	var wg sync.WaitGroup
	for seed := range uint64(connections) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for sent.Add(1) <= n && !t.Failed() {
				state := "t1." + base64.RawURLEncoding.EncodeToString(forge(r))
				a, err := post(t.Context(), client, url, tool, bytes.Join([][]byte{before, after}, []byte(state)))
				if err != nil || a.status != http.StatusOK || a.reason != "requestState" {
					t.Errorf("%s was not refused: %+v, %v", state, a, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d forged states in %v", n, time.Since(begin))
}

// A process whose key service is gone tells its clients to come back, does nothing before,
// and goes on when the service is there again. One that is warm notices nothing.
func TestKMSGone(t *testing.T) {
	keys := localkms.Start(t)
	arn := keys.NewKey(t)
	warm := start(t, keys, arn)
	state := play(t, warm.url, 0, "").state
	for name, gone := range map[string]http.HandlerFunc{
		"breaks off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"is silent": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then is the end of the connection noticed
			<-r.Context().Done()
		},
		"throttles": failure(http.StatusBadRequest, "ThrottlingException"),
		"fails":     failure(http.StatusInternalServerError, "KMSInternalException"),
	} {
		t.Run(name, func(t *testing.T) {
			cold := start(t, keys, arn)
			cold.Shut(gone)
			warm.Shut(gone)
			defer warm.Shut(nil)
			begin := time.Now()
			later(t, play(t, cold.url, 1, state), "key_unavailable")
			later(t, play(t, cold.url, 0, ""), "key_unavailable")
			later(t, must(t, cold.url, request{tool: "keep_state", arguments: `{"bytes":10}`}), "key_unavailable")
			t.Logf("three answers in %v", time.Since(begin))
			if n := cold.Calls(); n < 2 || n > 6 {
				t.Errorf("%d calls of the key service, want 2 to 6", n)
			}
			wantCounter(t, cold.url, 0)
			conversation(t, func(int) string { return warm.url })

			cold.Shut(nil)
			eventually(t, "the call goes on", func() bool {
				a := play(t, cold.url, 1, state)
				if a.status != http.StatusOK {
					later(t, a, "key_unavailable")
					return false
				}
				return strings.Contains(a.text, rounds[1].want)
			})
			cold.calls(t, "recovering", 1)
			conversation(t, func(int) string { return cold.url })
			cold.calls(t, "a warm process", 0)
		})
	}
	warm.calls(t, "a process that was warm before", 1)
}

// failure answers as KMS does.
func failure(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"__type":%q}`, code)
	}
}
