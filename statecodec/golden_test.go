package statecodec

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// golden is a file of testdata/tokens: a token as some version of this package sealed it,
// and what must become of it for ever. The files are never made anew, only added to.
type golden struct {
	Comment     string
	KeyID       string
	Key         string // hex
	Now         int64  // when it is opened
	Audience    string
	Principal   [5]string // scheme, issuer, subject, tenant, client
	Method      string
	Name        string
	ArgsDigest  string // hex
	MinRevision uint32
	Token       string
	Error       string `json:",omitempty"` // the sentinel's text; with it there is no state
	State       *goldenState
}

type goldenState struct {
	CallID                   string // hex
	Started, Issued, Expires int64
	Revision                 uint32
	Round                    uint16
	Journal                  string
}

func (g *golden) binding(t testing.TB) Binding {
	p := g.Principal
	return Binding{Audience(g.Audience), Principal(p[0], p[1], p[2], p[3], p[4]), Request(g.Method, g.Name, [32]byte(unhex(t, g.ArgsDigest)))}
}

func (g *goldenState) state(t testing.TB) State {
	second := func(n int64) time.Time { return time.Unix(n, 0).UTC() }
	return State{CallID: CallID(unhex(t, g.CallID)), Started: second(g.Started), Issued: second(g.Issued), Expires: second(g.Expires),
		Revision: g.Revision, Round: g.Round, Journal: []byte(g.Journal)}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenFiles(t testing.TB) map[string]golden {
	t.Helper()
	names, err := filepath.Glob("testdata/tokens/*.json")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d golden tokens, %v", len(names), err)
	}
	all := map[string]golden{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		var g golden
		if err := dec.Decode(&g); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[filepath.Base(name)] = g
	}
	return all
}

func TestGoldenTokens(t *testing.T) {
	for name, g := range goldenFiles(t) {
		t.Run(name, func(t *testing.T) {
			k := &fakeKey{id: g.KeyID, secret: unhex(t, g.Key)}
			got, err := newCodec(t, &Options{Now: at(g.Now, 0)}, k).Open(t.Context(), g.Token, g.binding(t), g.MinRevision)
			if g.State == nil {
				for _, sentinel := range sentinels {
					if sentinel.Error() == g.Error {
						refused(t, got, err, sentinel)
						return
					}
				}
				t.Fatalf("no sentinel says %q", g.Error)
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := g.State.state(t); !reflect.DeepEqual(got, want) {
				t.Errorf("opened to %+v, want %+v", got, want)
			}
		})
	}
}
