package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/statecodec"
)

type searchIn struct {
	Query  string   `json:"query" jsonschema:"what to look for" minLength:"1"`
	Limit  int      `json:"limit" default:"10" minimum:"1" maximum:"100"`
	Tags   []string `json:"tags,omitempty"`
	Filter struct {
		Since string `json:"since,omitempty"`
		Lang  string `json:"lang" enum:"en,de,fr"`
	} `json:"filter"`
}

type searchOut struct {
	Total int         `json:"total"`
	Items []searchHit `json:"items"`
}

type searchHit struct {
	ID    int64   `json:"id"`
	Title string  `json:"title"`
	Score float64 `json:"score"`
}

// discard is a ResponseWriter that keeps nothing.
type discard struct {
	header http.Header
	status int
	n      int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { d.n += len(b); return len(b), nil }

// BenchmarkCall is one tools/call through ServeHTTP with every check on.
func BenchmarkCall(b *testing.B) {
	h, err := New(thaw.Server{Name: "bench", Version: "1", Tools: []*thaw.Tool{
		thaw.NewTool("search", "Searches.", func(_ context.Context, in searchIn) (searchOut, error) {
			return searchOut{Total: 2, Items: []searchHit{{1, in.Query, 0.9}, {2, in.Query + "!", 0.5}}}, nil
		}, nil),
	}}, &Options{Host: resident, Limits: Limits{RequestTimeout: defaultRequestTimeout}})
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}},"name":"search","arguments":{"query":"hello world","limit":10,"tags":["a","b"],"filter":{"lang":"en"}}}}`)
	r, _ := http.NewRequest("POST", "http://localhost/mcp", nil)
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": "search", "User-Agent": "bench/1.0", "Accept-Encoding": "gzip"} {
		r.Header.Set(k, v)
	}
	r.ContentLength = int64(len(body))
	w := &discard{header: http.Header{}}
	reader := bytes.NewReader(body)
	r.Body = io.NopCloser(reader)
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
	if w.status != 200 {
		b.Fatal(w.status)
	}
}

// BenchmarkCatalogue is a start that makes, serves and lists n tools whole.
func BenchmarkCatalogue(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tools := make([]*thaw.Tool, n)
				for i := range tools {
					tools[i] = thaw.NewTool("t"+strconv.Itoa(i), "Searches.", func(context.Context, searchIn) (searchOut, error) { return searchOut{}, nil }, nil)
				}
				h, err := New(thaw.Server{Name: "bench", Version: "1", Tools: tools}, &Options{Host: resident, Limits: Limits{PageItems: 100_000, PageBytes: 1 << 30}})
				if err != nil {
					b.Fatal(err)
				}
				if page, err := h.catalog.Load().lists[listTools].first(); err != nil || len(page) < n*100 {
					b.Fatal(len(page), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/tool")
		})
	}
}

// BenchmarkRounds is a call that asks once, both rounds of it on instances chosen at random:
// key-service calls per thousand calls are what a fleet of that size costs in its first
// thousand.
func BenchmarkRounds(b *testing.B) {
	for _, instances := range []int{1, 100} {
		b.Run(fmt.Sprintf("instances=%d", instances), func(b *testing.B) {
			fleetKeys := make([]*testKey, instances)
			fleet := make([]*Handler, instances)
			var done []string
			for i := range fleet {
				fleetKeys[i] = &testKey{secret: "k"}
				h, err := New(named(transferServer(&done, &thaw.ToolOptions{AllowReplay: true})),
					&Options{StateKeys: []statecodec.Key{fleetKeys[i]}, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					b.Fatal(err)
				}
				fleet[i] = h
			}
			random := rand.New(rand.NewPCG(1, 2))
			first := transferCall(`{"to":"A","amount":10}`)
			calls, counted := 0, 0.0
			b.ReportAllocs()
			for b.Loop() {
				state := stateOf(b, do(b, fleet[random.IntN(instances)], first.request(b)))
				do(b, fleet[random.IntN(instances)], retry(first, state, yes).request(b))
				if calls++; calls == 1000 {
					for _, k := range fleetKeys {
						counted += float64(k.calls)
					}
				}
			}
			if calls >= 1000 {
				b.ReportMetric(counted, "keycalls/1000")
			}
		})
	}
}

func named(s thaw.Server) thaw.Server {
	s.Name, s.Version = "bench", "1"
	return s
}
