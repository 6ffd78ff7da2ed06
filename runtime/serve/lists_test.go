package serve

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/host"
)

func numbered(n int, prefix string) []*thaw.Tool {
	var tools []*thaw.Tool
	for i := range n {
		tools = append(tools, thaw.NewTool(fmt.Sprintf("%s%d", prefix, i), "", func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	}
	return tools
}

// pages walks tools/list to its end.
func pages(t *testing.T, h *Handler) (names []string, count int) {
	t.Helper()
	params := map[string]any{}
	for {
		result := do(t, h, post{method: "tools/list", params: params}.request(t)).result(t)
		count++
		for _, tool := range result["tools"].([]any) {
			names = append(names, tool.(map[string]any)["name"].(string))
		}
		if result["ttlMs"] != 300000.0 || result["cacheScope"] != "private" || result["resultType"] != "complete" {
			t.Fatalf("hints (C-01, C-04): %v", result)
		}
		next, ok := result["nextCursor"].(string)
		if !ok {
			return names, count
		}
		params = map[string]any{"cursor": next}
	}
}

// F-03, F-44, F-45.
func TestPagination(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		limits Limits
		pages  int
	}{
		{"none", 1, Limits{}, 1},
		{"by items", 10, Limits{PageItems: 3}, 4},
		{"exactly", 9, Limits{PageItems: 3}, 3},
		{"by bytes", 10, Limits{PageBytes: 1}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := newHandler(t, thaw.Server{Tools: numbered(c.n, "t")}, Options{Host: resident, Limits: c.limits})
			names, n := pages(t, h)
			if n != c.pages || len(names) != c.n {
				t.Fatalf("%d pages, %d tools", n, len(names))
			}
			for i, name := range names {
				if name != fmt.Sprintf("t%d", i) {
					t.Fatalf("order: %q", names)
				}
			}
		})
	}
}

// A cursor of one instance goes on at another whose catalogue has grown meanwhile.
func TestCursorOnAnotherInstance(t *testing.T) {
	old, _ := newHandler(t, thaw.Server{Tools: numbered(4, "t")}, Options{Host: resident, Limits: Limits{PageItems: 2}})
	cursor := do(t, old, post{method: "tools/list"}.request(t)).result(t)["nextCursor"]
	grown, _ := newHandler(t, thaw.Server{Tools: append(numbered(3, "new"), numbered(4, "t")...)}, Options{Host: offLoopback, Limits: Limits{PageItems: 2}})
	result := do(t, grown, post{method: "tools/list", params: map[string]any{"cursor": cursor}}.request(t)).result(t)
	if got := fmt.Sprint(result["tools"].([]any)[0].(map[string]any)["name"]); got != "t2" {
		t.Errorf("went on at %s, want t2", got)
	}
	shrunk, _ := newHandler(t, thaw.Server{Tools: numbered(1, "t")}, Options{Host: resident})
	if got := do(t, shrunk, post{method: "tools/list", params: map[string]any{"cursor": cursor}}.request(t)); got.code() != -32602 || got.reason() != "invalid_cursor" {
		t.Errorf("a cursor to what is gone: %s", got.raw)
	}
}

func TestBadCursors(t *testing.T) {
	h, _ := newHandler(t, thaw.Server{Tools: numbered(2, "t")}, Options{Host: resident})
	good := cursorAfter("tools", "t0")
	for name, cursor := range map[string]any{
		"empty": "", "junk": "junk!", "number": 7, "null": nil, "padded": good + "=", "line end": good + "\n",
		"another list": cursorAfter("prompts", "t0"), "no such item": cursorAfter("tools", "nope"),
		"bits left over": good[:len(good)-1] + "B",
		"no separator":   base64.RawURLEncoding.EncodeToString([]byte("tools")),
	} {
		got := do(t, h, post{method: "tools/list", params: map[string]any{"cursor": cursor}}.request(t))
		if got.code() != -32602 {
			t.Errorf("%s: %d %s", name, got.status, got.raw)
		}
	}
}

func FuzzCursor(f *testing.F) {
	ran := 0
	h, err := New(testServer(&ran), &Options{Host: host.Facts{Resident: true}})
	if err != nil {
		f.Fatal(err)
	}
	l := h.catalog.Load().lists[listTools]
	f.Add(cursorAfter("tools", "echo"))
	f.Add("")
	f.Add("====")
	f.Fuzz(func(t *testing.T, cursor string) {
		i, ok := l.after(cursor)
		if !ok {
			return
		}
		if i < 1 || i > 2 {
			t.Fatalf("cursor %q goes on at %d", cursor, i)
		}
		items, _ := l.items()
		if again := cursorAfter("tools", items[i-1].name); again != cursor {
			t.Fatalf("%q is a second form of %q", cursor, again)
		}
	})
}

// C-01 to C-06, V-05 to V-10.
func TestDiscoverAndHints(t *testing.T) {
	ran := 0
	s := testServer(&ran)
	s.ListTTL, s.PublicLists, s.Instructions = 2*time.Second, true, "Be kind."
	h, _ := newHandler(t, s, Options{Host: resident})
	d := do(t, h, post{method: "server/discover"}.request(t)).result(t)
	if d["ttlMs"] != 2000.0 || d["cacheScope"] != "public" || d["instructions"] != "Be kind." || fmt.Sprint(d["supportedVersions"]) != "[2026-07-28]" {
		t.Errorf("%v", d)
	}
	want := "map[completions:map[] prompts:map[listChanged:true] resources:map[listChanged:true subscribe:true] tools:map[listChanged:true]]"
	if got := fmt.Sprint(d["capabilities"]); got != want {
		t.Errorf("capabilities %s, want %s", got, want)
	}
	if info := d["_meta"].(map[string]any)["io.modelcontextprotocol/serverInfo"]; fmt.Sprint(info) != "map[name:test version:1]" {
		t.Errorf("serverInfo %v", info)
	}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		r := do(t, h, post{method: method}.request(t)).result(t)
		if r["ttlMs"] != 2000.0 || r["cacheScope"] != "public" {
			t.Errorf("%s: %v", method, r)
		}
	}
	// A call carries no hints (C-08).
	r := do(t, h, post{method: "tools/call", params: map[string]any{"name": "echo", "arguments": map[string]any{"text": "x"}}}.request(t)).result(t)
	if r["ttlMs"] != nil || r["cacheScope"] != nil {
		t.Errorf("%v", r)
	}

	// L-15: where no stream lives on, nothing is promised and listen is unknown.
	buffered, _ := newHandler(t, testServer(&ran), Options{})
	d = do(t, buffered, post{method: "server/discover"}.request(t)).result(t)
	if got := fmt.Sprint(d["capabilities"]); strings.Contains(got, "true") {
		t.Errorf("capabilities %s", got)
	}
	if got := do(t, buffered, post{method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{}}}.request(t)); got.status != 404 || got.code() != -32601 {
		t.Errorf("listen: %d %s", got.status, got.raw)
	}

	// B-17, B-28: what is not offered is unknown, serverInfo can be left out.
	bare, _ := newHandler(t, thaw.Server{Name: "bare", OmitServerInfo: true, ListTTL: -1}, Options{Host: resident})
	for _, method := range []string{"tools/list", "tools/call", "prompts/list", "resources/read", "completion/complete", "subscriptions/listen", "tasks/get", "ping"} {
		got := do(t, bare, post{method: method, params: map[string]any{"name": "x", "uri": "x"}}.request(t))
		if got.status != 404 || got.code() != -32601 {
			t.Errorf("%s: %d %s", method, got.status, got.raw)
		}
	}
	d = do(t, bare, post{method: "server/discover"}.request(t)).result(t)
	if d["_meta"] != nil || d["ttlMs"] != 0.0 {
		t.Errorf("%v", d)
	}
}
