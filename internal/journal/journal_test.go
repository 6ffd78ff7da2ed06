package journal_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/journal"
)

var question = call.Question{Key: "agree", Method: "elicitation/create", Params: []byte(`{"message":"Sure?"}`)}

// golden is a journal as states in clients' hands have it: it has to be read for ever.
const golden = `{"a":{"agree":["FcuxNbB0iFGsk17zqxND7Q",{"action":"accept"}]},"v":{"n":1,"s \"x\"":{"b":[null,"é"]}},` +
	`"f":{"bad":{"text":"disk full"}},"q":{"where":["elicitation/create","AAECAwQFBgcICQoLDA0ODw"]}}`

func sample() *journal.Journal {
	return &journal.Journal{
		Entries: []journal.Entry{
			{Key: "agree", Kind: journal.Answer, Digest: journal.DigestOf(question), Data: []byte(`{"action":"accept"}`)},
			{Key: "n", Kind: journal.Value, Data: []byte("1")},
			{Key: `s "x"`, Kind: journal.Value, Data: []byte(`{"b":[null,"é"]}`)},
			{Key: "bad", Kind: journal.Failure, Data: []byte(`{"text":"disk full"}`)},
		},
		Asked: []journal.Asked{{Key: "where", Method: "elicitation/create", Digest: journal.Digest{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}},
	}
}

func TestGolden(t *testing.T) {
	if got := string(sample().AppendJSON(nil)); got != golden {
		t.Errorf("wrote\n%s, want\n%s", got, golden)
	}
	got, err := journal.Parse([]byte(golden))
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("read %+v, %v", got, err)
	}
	empty, err := journal.Parse((&journal.Journal{}).AppendJSON(nil))
	if err != nil || len(empty.Entries)+len(empty.Asked) != 0 {
		t.Errorf("%+v, %v", empty, err)
	}
}

func TestDigestTellsQuestionsApart(t *testing.T) {
	seen := map[journal.Digest]string{}
	for name, q := range map[string]call.Question{
		"itself":         question,
		"another method": {Key: "agree", Method: "roots/list", Params: question.Params},
		"another text":   {Key: "agree", Method: question.Method, Params: []byte(`{"message":"Sure!"}`)},
		"shifted":        {Key: "agree", Method: question.Method + "{", Params: question.Params[1:]},
		"empty":          {},
	} {
		d := journal.DigestOf(q)
		if other, twice := seen[d]; twice {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
	renamed := question
	renamed.Key = "other"
	if journal.DigestOf(renamed) != journal.DigestOf(question) {
		t.Error("the key is part of the digest; it is the key of the entry already")
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":              ``,
		"no object":            `[]`,
		"a broken text":        `{"a":`,
		"an unknown member":    `{"z":{}}`,
		"a member of values":   `{"v":[1]}`,
		"an answer alone":      `{"a":{"k":{"action":"accept"}}}`,
		"an answer of one":     `{"a":{"k":["FcuxNbB0iFGsk17zqxND7Q"]}}`,
		"an answer of three":   `{"a":{"k":["FcuxNbB0iFGsk17zqxND7Q",1,2]}}`,
		"a short digest":       `{"a":{"k":["0u0Z2F4s",1]}}`,
		"a padded digest":      `{"a":{"k":["FcuxNbB0iFGsk17zqxND7Q==",1]}}`,
		"a loose last digit":   `{"a":{"k":["FcuxNbB0iFGsk17zqxND7R",1]}}`,
		"a digest of a number": `{"a":{"k":[1,1]}}`,
		"a question of one":    `{"q":{"k":["elicitation/create"]}}`,
		"a method of a number": `{"q":{"k":[1,"FcuxNbB0iFGsk17zqxND7Q"]}}`,
		"a key twice":          `{"v":{"k":1,"k":2}}`,
		"a member twice":       `{"v":{},"v":{}}`,
		"two journals":         `{}{}`,
	} {
		if j, err := journal.Parse([]byte(text)); err == nil || j != nil {
			t.Errorf("%s: read %+v, %v", name, j, err)
		}
	}
}

// A journal that parses is written and read again with the same meaning.
func FuzzParse(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte(`{"q":{"a":["x","AAECAwQFBgcICQoLDA0ODw"]}}`))
	f.Add([]byte(`{"v":{"k":1},"f":{"k":2}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := journal.Parse(text)
		if err != nil {
			return
		}
		if strings.Count(string(text), `"v"`) > 1 || twice(j) {
			return // a run writes each key once
		}
		again, err := journal.Parse(j.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(j.AppendJSON(nil), again.AppendJSON(nil)) {
			t.Errorf("%s became %s", j.AppendJSON(nil), again.AppendJSON(nil))
		}
	})
}

func twice(j *journal.Journal) bool {
	seen := map[string]bool{}
	for _, e := range j.Entries {
		if seen[e.Key] {
			return true
		}
		seen[e.Key] = true
	}
	return false
}
