// Package floor is what an engineer writes for one tool with net/http and encoding/json
// alone: no checks, no schema, no protocol beyond the envelope. It is the measure for
// the cost of everything that the others add.
package floor

import (
	"encoding/json"
	"net/http"

	"github.com/thaw-mcp/thaw/e2e/bench/toolset"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string                      `json:"name"`
		Arguments toolset.SearchIn[toolset.A] `json:"arguments"`
	} `json:"params"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  result          `json:"result"`
}

type result struct {
	ResultType        string                       `json:"resultType"`
	Content           []text                       `json:"content"`
	StructuredContent toolset.SearchOut[toolset.A] `json:"structuredContent"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Handler answers tools/call of the search tool.
func Handler(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, err := toolset.Search(r.Context(), req.Params.Arguments)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b, err := json.Marshal(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A failed write means that the client has left.
	_ = json.NewEncoder(w).Encode(response{
		JSONRPC: "2.0",
		ID:      req.ID,
		Result:  result{ResultType: "complete", Content: []text{{"text", string(b)}}, StructuredContent: out},
	})
}
