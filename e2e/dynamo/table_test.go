package dynamo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/task"
)

// TestLayout holds the package's comment: what lies where after a task's life, and when it may
// go (B-46).
func TestLayout(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg aws.Config) {
		s := open(t, cfg, newTable(t, cfg))
		h := head("t")
		h.Journal = 2
		must(t, s.Create(t.Context(), h, call("call"), entry(0, "e0"), entry(1, "e1")))
		h = edited(h, func(h *task.Head) { h.Epoch, h.Journal = 1, 3 })
		must(t, s.Commit(t.Context(), now, h, task.Part{Kind: task.PartEntry, Epoch: 1, Seq: 2, Data: large}))
		h = edited(h, func(h *task.Head) { h.Wake = time.Time{}; h.Asked = []task.Asked{{Key: "agree", Epoch: 1}} })
		must(t, s.Commit(t.Context(), now, h, task.Part{Kind: task.PartQuestion, Epoch: 1, Name: "agree", Data: []byte("?")}))
		h = edited(h, func(h *task.Head) { h.Wake = now; h.Asked = nil })
		must(t, s.Commit(t.Context(), now, h, answer("yes")))
		h = edited(h, func(h *task.Head) { h.Wake = time.Time{}; h.Outcome = &task.OutcomeRef{Epoch: 1} })
		must(t, s.Commit(t.Context(), now, h, task.Part{Kind: task.PartOutcome, Epoch: 1, Data: []byte("done")}))

		const write = "[A-Za-z0-9_-]{8}"
		want := []string{
			"B#" + write + "#0000000000", "B#" + write + "#0000000001", "C#" + write, "H", "I#agree#" + write, "J#0000000002",
			"O#0000000001", "Q#0000000001#agree", "X#" + write + "#0#0000000001",
		}
		items := s.items(t, "T#t")
		if len(items) != len(want) {
			t.Fatalf("%q, want %q", s.sorts(t, "T#t"), want)
		}
		expires := h.Expires.Add(time.Second - 1).Unix()
		for n, i := range items {
			if !regexp.MustCompile("^" + want[n] + "$").MatchString(text(i, "s")) {
				t.Errorf("item %d is %s, want %s", n, text(i, "s"), want[n])
			}
			goes := expires
			if want[n] != "H" {
				goes += 24 * 3600
			}
			if x := number(i, "x"); x != strconv.FormatInt(goes, 10) || len(x) != 10 {
				t.Errorf("%s goes at %s, want %d", text(i, "s"), x, goes)
			}
		}

		u := use("c", 1, 1)
		claimed(t, s, u, true)
		uses := s.items(t, "U#c")
		if len(uses) != 1 || text(uses[0], "s") != "U" || number(uses[0], "x") != strconv.FormatInt(u.Expires.Add(time.Second-1).Unix(), 10) {
			t.Errorf("%+v", uses)
		}

		never := head("never")
		never.Expires = time.Time{}
		must(t, s.Create(t.Context(), never, call("call")))
		for _, i := range s.items(t, "T#never") {
			if i["x"] != nil {
				t.Errorf("%s goes at %s, want never", text(i, "s"), number(i, "x"))
			}
		}
	})
}

// Where the head is gone, who has read it reads its parts, if they can only be its own.
func TestPartsOutliveTheHead(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg aws.Config) {
		table := newTable(t, cfg)
		s := open(t, cfg, table)
		kinds := map[task.Kind][]string{task.PartCall: {"call"}, task.PartEntry: {"e0", "e1"}, task.PartAnswer: {"yes"}}
		begin := func(id string) {
			h := head(id)
			must(t, s.Create(t.Context(), h, call("call"), entry(0, "e0")))
			h = edited(h, func(h *task.Head) { h.Journal = 2 })
			must(t, s.Commit(t.Context(), now, h, entry(1, "e1"), answer("yes"), task.Part{Kind: task.PartOutcome, Epoch: 1, Data: []byte("done")}))
		}
		begin("t")
		s.remove(t, "T#t", "H")
		for k, want := range kinds {
			partsAre(t, s, "t", k, want...)
		}
		if parts, err := s.Parts(t.Context(), "t", task.PartOutcome, "", 1, 0); err != nil || string(parts[0].Data) != "done" {
			t.Errorf("%d parts, %v", len(parts), err)
		}
		for k, c := range map[task.Kind]struct {
			name  string
			epoch uint32
		}{task.PartOutcome: {"", 2}, task.PartQuestion: {"agree", 1}} {
			if parts, err := s.Parts(t.Context(), "t", k, c.name, c.epoch, 0); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%d parts, %v; want ErrNotFound", len(parts), err)
			}
		}

		begin("two")
		second := head("two")
		second.Message = "another"
		if err := s.Create(t.Context(), second, call("another"), entry(0, "another")); !errors.Is(err, task.ErrExists) {
			t.Fatal(err)
		}
		h := head("two")
		h.Version = 9
		var conflict *task.Conflict
		if err := s.Commit(t.Context(), now, h, answer("another")); !errors.As(err, &conflict) {
			t.Fatal(err)
		}
		s.remove(t, "T#two", "H")
		for k, all := range kinds {
			if parts, err := s.Parts(t.Context(), "two", k, "", 0, uint32(len(all))); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%d parts of kind %d, %v; want ErrNotFound: nobody knows whose they are", len(parts), k, err)
			}
		}
		for k := range task.PartOutcome + 1 {
			if parts, err := s.Parts(t.Context(), "none", k, "", 0, 1); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%d parts of kind %d, %v; want ErrNotFound", len(parts), k, err)
			}
		}
	})
}

// What expires is removed by the table: a head when it expires, its parts a day later.
func TestTimeToLive(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]struct{ set, removes bool }{
		"ministack": {true, true},
		"moto":      {true, false}, // keeps the setting and removes nothing
		"dynalite":  {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := emulatorNamed(name).start(t)
			s := open(t, cfg, newTable(t, cfg))
			_, err := s.client.UpdateTimeToLive(t.Context(), dynamostore.TimeToLive(s.table))
			var unknown smithy.APIError
			if !what.set {
				if !errors.As(err, &unknown) || unknown.ErrorCode() != "UnknownOperationException" {
					t.Errorf("%v: it has got a TimeToLive, hold it to that", err)
				}
				return
			}
			must(t, err)
			out, err := s.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &s.table})
			must(t, err)
			if d := out.TimeToLiveDescription; aws.ToString(d.AttributeName) != "x" || d.TimeToLiveStatus != types.TimeToLiveStatusEnabled {
				t.Errorf("%+v", d)
			}
			if what.removes {
				removes(t, s)
			}
		})
	}
}

// removes waits for the next round of the emulator's remover, which comes once a minute.
func removes(t *testing.T, s *place) {
	over := head("over")
	over.Expires = now.Add(-time.Minute)
	must(t, s.Create(t.Context(), over, call("call")))
	must(t, s.Create(t.Context(), head("kept"), call("call")))
	never := head("never")
	never.Expires = time.Time{}
	must(t, s.Create(t.Context(), never, call("call")))
	old := use("over", 1, 1)
	old.Expires = now.Add(-time.Minute)
	claimed(t, s, old, true)
	claimed(t, s, use("kept", 1, 1), true)

	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		_, err := s.Head(t.Context(), "over")
		if errors.Is(err, task.ErrNotFound) {
			break
		}
		must(t, err)
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("an expired head is not removed")
		}
	}
	partsAre(t, s, "over", task.PartCall, "call")
	claimed(t, s, use("over", 1, 2), true) // the record of the first round is gone too
	is(t, s, head("kept"))
	is(t, s, never)
	claimed(t, s, use("kept", 1, 2), false)
	must(t, s.Create(t.Context(), head("over"), call("another life")))
	partsAre(t, s, "over", task.PartCall, "another life")
}

// The emulators differ in what a Store has to live with.
func TestOldItems(t *testing.T) {
	t.Parallel()
	for name, returned := range map[string]bool{"ministack": true, "moto": true, "dynalite": false} {
		t.Run(name, func(t *testing.T) {
			cfg := emulatorNamed(name).start(t)
			s := open(t, cfg, newTable(t, cfg))
			must(t, s.Create(t.Context(), head("t")))
			_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{
				TableName: &s.table, Item: headKey("t"), ConditionExpression: aws.String("attribute_not_exists(p)"),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			})
			var failed *types.ConditionalCheckFailedException
			if !errors.As(err, &failed) || (failed.Item != nil) != returned {
				t.Errorf("%v with %d attributes; returned should be %t", err, len(failed.Item), returned)
			}
		})
	}
}

// Of two parts of one name in one write it is as if they came in two.
func TestPartsOfOneName(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg aws.Config) {
		s := open(t, cfg, newTable(t, cfg))
		at := func(epoch uint32, data string) task.Part {
			return task.Part{Kind: task.PartEntry, Epoch: epoch, Data: []byte(data)}
		}
		h := head("t")
		h.Journal = 1
		must(t, s.Create(t.Context(), h, call("first"), call("second"), at(5, "five"), at(4, "four"), answer("yes"), answer("no")))
		partsAre(t, s, "t", task.PartCall, "first")
		partsAre(t, s, "t", task.PartAnswer, "yes")
		partsAre(t, s, "t", task.PartEntry, "five")
		for _, c := range []struct {
			parts []task.Part
			want  string
		}{
			{[]task.Part{at(4, "four")}, "five"}, // those with which the task began are entries like others
			{[]task.Part{at(5, "five again")}, "five again"},
			{[]task.Part{at(6, "six"), at(5, "five")}, "six"},
			{[]task.Part{at(6, "six"), at(6, "six again")}, "six again"},
			{[]task.Part{at(7, "seven"), at(8, "eight")}, "eight"},
		} {
			commit(t, s, &h, func(*task.Head) {}, c.parts...)
			partsAre(t, s, "t", task.PartEntry, c.want)
		}
	})
}

// A journal of a thousand entries comes in pages, whatever is asked of it.
func TestPages(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg aws.Config) {
		table := newTable(t, cfg)
		s := open(t, cfg, table)
		h := head("t")
		must(t, s.Create(t.Context(), h, call("call")))
		const n, perCommit = 300, 50
		var want []string
		for len(want) < n {
			var parts []task.Part
			for range perCommit {
				seq := uint32(len(want))
				want = append(want, fmt.Sprintf("%d %s", seq, strings.Repeat("x", 10_000)))
				parts = append(parts, entry(seq, want[seq]))
			}
			h = edited(h, func(h *task.Head) { h.Journal += perCommit })
			must(t, s.Commit(t.Context(), now, h, parts...))
		}
		counted := &network{}
		parts, err := through(t, cfg, table, counted, time.Minute).Parts(t.Context(), "t", task.PartEntry, "", 0, n)
		must(t, err)
		if !slices.EqualFunc(parts, want, func(p task.Part, w string) bool { return string(p.Data) == w }) {
			t.Error("other entries came back")
		}
		if counted.requests < 3 || counted.requests > 5 { // of 1 MB each
			t.Errorf("%d requests for 3 MB", counted.requests)
		}
		counted = &network{}
		parts, err = through(t, cfg, table, counted, time.Minute).Parts(t.Context(), "t", task.PartEntry, "", n-1, n)
		if err != nil || len(parts) != 1 || string(parts[0].Data) != want[n-1] || counted.requests != 2 {
			t.Errorf("the last entry: %d parts, %v, %d requests; want it after 2", len(parts), err, counted.requests)
		}
	})
}
