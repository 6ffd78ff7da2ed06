package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

// Blocks read back as they were written (F-12).
func TestContentRoundTrip(t *testing.T) {
	annotations := &Annotations{Audience: []Role{RoleUser}, Priority: new(float64), LastModified: "2026-01-02T03:04:05Z"}
	text := TextResource("a:b", "text/plain", "x")
	for _, c := range []struct {
		content Content
		want    string
	}{
		{&TextContent{Text: "a\"\u2028"}, `{"type":"text","text":"a\"\u2028"}`},
		{&TextContent{Text: "", Annotations: annotations, Meta: map[string]any{"k": "v"}},
			`{"type":"text","text":"","annotations":{"audience":["user"],"priority":0,"lastModified":"2026-01-02T03:04:05Z"},"_meta":{"k":"v"}}`},
		{&ImageContent{Data: []byte{0, 255}, MIMEType: "image/png"}, `{"type":"image","data":"AP8=","mimeType":"image/png"}`},
		{&AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"}, `{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}`},
		{&ResourceLink{URI: "a:b", Name: "n", Size: 3}, `{"type":"resource_link","uri":"a:b","name":"n","size":3}`},
		{&EmbeddedResource{Resource: text}, `{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","text":"x"}}`},
		{&EmbeddedResource{Resource: BlobResource("a:b", "", []byte("x"))}, `{"type":"resource","resource":{"uri":"a:b","blob":"eA=="}}`},
	} {
		got, err := c.content.AppendJSON(nil)
		if err != nil || string(got) != c.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			continue
		}
		back, err := UnmarshalContent(got)
		if err != nil {
			t.Errorf("%s: %v", got, err)
			continue
		}
		if again, _ := back.AppendJSON(nil); string(again) != c.want {
			t.Errorf("%s became %s", c.want, again)
		}
	}
}

func TestBadContent(t *testing.T) {
	text := "x"
	for name, c := range map[string]Content{
		"image without type":    &ImageContent{},
		"audio without type":    &AudioContent{},
		"link without name":     &ResourceLink{URI: "a:b"},
		"resource without URI":  &EmbeddedResource{},
		"resource of two kinds": &EmbeddedResource{Resource: ResourceContents{URI: "a:b", Text: &text, Blob: []byte("x")}},
	} {
		if b, err := c.AppendJSON(nil); err == nil {
			t.Errorf("%s was written: %s", name, b)
		}
	}
	for name, raw := range map[string]string{
		"unknown type": `{"type":"video"}`, "bad base64": `{"type":"image","data":"*","mimeType":"a/b"}`, "loose base64": `{"type":"image","data":"AP8","mimeType":"a/b"}`,
		"no object": `[]`, "wrong case": `{"Type":"text"}`,
	} {
		if c, err := UnmarshalContent([]byte(raw)); err == nil {
			t.Errorf("%s was read: %v", name, c)
		}
	}
}

func TestCallToolResult(t *testing.T) {
	for _, want := range []string{
		`{"resultType":"complete","content":[]}`,
		`{"resultType":"complete","content":[{"type":"text","text":"x"}],"structuredContent":null}`,
		`{"resultType":"complete","content":[],"structuredContent":{"n":12345678901234567890},"isError":true,"_meta":{"k":"v"}}`,
	} {
		var r CallToolResult
		if err := json.Unmarshal([]byte(want), &r); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(&r); err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	for _, raw := range []string{"", "{", "{}{}", `{"a":1,"a":1}`} {
		if _, err := (&CallToolResult{StructuredContent: json.RawMessage(raw)}).MarshalJSON(); err == nil {
			t.Errorf("structured content %q was written", raw)
		}
	}
}

func TestStructuredResult(t *testing.T) {
	r, err := StructuredResult(map[string]any{"a": []int(nil)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"resultType":"complete","content":[{"type":"text","text":"{\"a\":[]}"}],"structuredContent":{"a":[]}}`
	if got, err := r.MarshalJSON(); err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	// What stands in its place is checked again.
	r.StructuredContent = json.RawMessage(`{"a":`)
	if got, err := r.MarshalJSON(); err == nil {
		t.Errorf("got %s", got)
	}
	if _, err := StructuredResult(make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
}

func TestPromptMessage(t *testing.T) {
	const want = `{"role":"user","content":{"type":"text","text":"x"}}`
	var m PromptMessage
	if err := json.Unmarshal([]byte(want), &m); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(&m); err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []PromptMessage{{Role: "system", Content: &TextContent{}}, {Role: RoleUser}} {
		if b, err := bad.AppendJSON(nil); err == nil {
			t.Errorf("%s was written", b)
		}
	}
}

// B-29: a declared capability is an object at its place.
func TestClientCapabilities(t *testing.T) {
	c := ClientCapabilities{Raw: json.RawMessage(`{"elicitation":{"url":{}},"sampling":null,"roots":true,"extensions":{"io.modelcontextprotocol/tasks":{}}}`)}
	for path, want := range map[string]bool{
		"": true, "elicitation": true, "elicitation url": true, "elicitation form": false, "sampling": false, "roots": false, "roots listChanged": false,
		"extensions io.modelcontextprotocol/tasks": true, "Elicitation": false, "nope": false,
	} {
		if got := c.Has(strings.Fields(path)...); got != want {
			t.Errorf("Has(%s) = %v", path, got)
		}
	}
	if (ClientCapabilities{}).Has() {
		t.Error("nothing was declared")
	}
	if b, _ := json.Marshal(ClientCapabilities{}); string(b) != "{}" {
		t.Errorf("%s", b)
	}
	var back ClientCapabilities
	if err := json.Unmarshal([]byte(`{"sampling":{}}`), &back); err != nil || !back.Has("sampling") {
		t.Errorf("%s, %v", back.Raw, err)
	}
	if err := json.Unmarshal([]byte(`[]`), &back); err == nil {
		t.Error("an array was taken for capabilities")
	}
}
