package cold

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/localkms"
)

// In mid-rotation the answer of a round may be recorded under a key that the state is not
// sealed with. That this key is out of reach is no refusal: the user would start again and
// transfer twice.
func TestRecordUnderAKeyOutOfReach(t *testing.T) {
	keys := localkms.Start(t)
	old, next := keys.NewKey(t), keys.NewKey(t)
	store := "THAW_STORE=sqlite:" + filepath.Join(t.TempDir(), "tasks.db")
	run := func(d *localkms.Door, list string) string {
		return fixture.ServeIn(t, t.TempDir(), program, append(d.Env(), "THAW_STATE_KEY="+list, store)...)
	}
	door := keys.Door(t)
	before := run(keys.Door(t), "awskms:"+old+",awskms:"+next)
	after := run(keys.Door(t), "awskms:"+next+",awskms:"+old)
	cold := run(door, "awskms:"+next+",awskms:"+old)
	call := request{tool: "transfer", arguments: `{"to":"A","amount":10}`}
	retry := call
	retry.state, retry.answers = must(t, after, call).state, agree
	want := must(t, before, retry).text
	open := keys.Door(t)
	door.Shut(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(old)) {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		open.ServeHTTP(w, r)
	})
	later(t, must(t, cold, retry), "key_unavailable")
	door.Shut(nil)
	var last *answer
	eventually(t, "the recorded answer opens", func() bool {
		last = must(t, cold, retry)
		return last.status == http.StatusOK
	})
	if last.text != want {
		t.Errorf("the same retry got %s, want %s", last.text, want)
	}
}
