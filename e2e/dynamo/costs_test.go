package dynamo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/thaw-mcp/thaw/task"
)

// cost is what DynamoDB counts: units of writing, of writing to the index, and of reading.
type cost struct{ writes, index, reads float64 }

func (c cost) String() string { return fmt.Sprintf("%g W + %g I, %g R", c.writes, c.index, c.reads) }

// meter has every answer tell its cost.
type meter struct {
	mu    sync.Mutex
	spent cost
}

// on is cfg with the meter.
func (m *meter) on(cfg aws.Config) aws.Config {
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			const all = types.ReturnConsumedCapacityIndexes
			switch in := in.Parameters.(type) {
			case *dynamodb.GetItemInput:
				in.ReturnConsumedCapacity = all
			case *dynamodb.QueryInput:
				in.ReturnConsumedCapacity = all
			case *dynamodb.PutItemInput:
				in.ReturnConsumedCapacity = all
			case *dynamodb.UpdateItemInput:
				in.ReturnConsumedCapacity = all
			}
			out, metadata, err := next.HandleInitialize(ctx, in)
			if err != nil {
				return out, metadata, err
			}
			switch out := out.Result.(type) {
			case *dynamodb.GetItemOutput:
				m.read(out.ConsumedCapacity)
			case *dynamodb.QueryOutput:
				m.read(out.ConsumedCapacity)
			case *dynamodb.PutItemOutput:
				m.wrote(out.ConsumedCapacity)
			case *dynamodb.UpdateItemOutput:
				m.wrote(out.ConsumedCapacity)
			}
			return out, metadata, nil
		}), middleware.Before)
	})
	return cfg
}

func (m *meter) read(c *types.ConsumedCapacity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent.reads += aws.ToFloat64(c.CapacityUnits)
}

func (m *meter) wrote(c *types.ConsumedCapacity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent.writes += aws.ToFloat64(c.Table.CapacityUnits)
	for _, index := range c.GlobalSecondaryIndexes {
		m.spent.index += aws.ToFloat64(index.CapacityUnits)
	}
}

// take is what was spent since the last time.
func (m *meter) take() cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	spent := m.spent
	m.spent = cost{}
	return spent
}

// life is what is done to a task, in order, and what each may cost.
var life = []struct {
	name string
	want cost
	do   func(t *testing.T, s *place, h *task.Head)
}{
	{"create", cost{2, 1, 0}, func(t *testing.T, s *place, h *task.Head) {
		must(t, s.Create(t.Context(), *h, call(strings.Repeat("c", 500))))
	}},
	{"poll", cost{0, 0, 1}, func(t *testing.T, s *place, h *task.Head) { is(t, s, *h) }},
	{"claim", cost{1, 0, 2}, func(t *testing.T, s *place, h *task.Head) {
		is(t, s, *h)
		commit(t, s, h, func(h *task.Head) {
			h.Phase, h.Worker, h.Epoch, h.Claims, h.LeaseUntil = task.Running, "0123456789abcdef01234567", h.Epoch+1, h.Claims+1, now.Add(time.Minute)
		})
		partsAre(t, s, h.ID, task.PartCall, strings.Repeat("c", 500))
	}},
	{"20 s of quiet running", cost{1, 0, 0}, func(t *testing.T, s *place, h *task.Head) {
		commit(t, s, h, func(h *task.Head) { h.LeaseUntil = h.LeaseUntil.Add(20 * time.Second) })
	}},
	{"the same with another wake", cost{1, 2, 0}, func(t *testing.T, s *place, h *task.Head) {
		commit(t, s, h, func(h *task.Head) {
			h.LeaseUntil = h.LeaseUntil.Add(20 * time.Second)
			h.Wake = h.Wake.Add(20 * time.Second)
		})
	}},
	{"step", cost{2, 0, 0}, func(t *testing.T, s *place, h *task.Head) {
		commit(t, s, h, func(h *task.Head) { h.Journal++ }, entry(0, strings.Repeat("e", 500)))
	}},
	{"park", cost{1, 1, 0}, func(t *testing.T, s *place, h *task.Head) {
		commit(t, s, h, func(h *task.Head) {
			h.Status, h.Phase, h.Worker, h.LeaseUntil, h.Wake = task.InputRequired, task.Asking, "", time.Time{}, time.Time{}
			h.Asked = []task.Asked{{Key: "agree", Digest: [16]byte{1}, Inline: []byte(strings.Repeat("q", 300))}}
		})
	}},
	{"answer", cost{2, 1, 1}, func(t *testing.T, s *place, h *task.Head) {
		is(t, s, *h)
		commit(t, s, h, func(h *task.Head) {
			h.Status, h.Phase, h.Wake, h.Asked = task.Working, task.Ready, now.Add(30*time.Second), nil
		}, answer(strings.Repeat("a", 100)))
	}},
	{"claim again", cost{1, 0, 4}, func(t *testing.T, s *place, h *task.Head) {
		is(t, s, *h)
		commit(t, s, h, func(h *task.Head) {
			h.Phase, h.Worker, h.Epoch, h.Claims, h.LeaseUntil = task.Running, "0123456789abcdef01234568", h.Epoch+1, h.Claims+1, now.Add(time.Minute)
		})
		partsAre(t, s, h.ID, task.PartCall, strings.Repeat("c", 500))
		partsAre(t, s, h.ID, task.PartEntry, strings.Repeat("e", 500))
		partsAre(t, s, h.ID, task.PartAnswer, strings.Repeat("a", 100))
	}},
	{"finish", cost{1, 1, 0}, func(t *testing.T, s *place, h *task.Head) {
		commit(t, s, h, func(h *task.Head) {
			h.Status, h.Phase, h.Worker, h.LeaseUntil, h.Wake = task.Completed, task.Done, "", time.Time{}, time.Time{}
			h.Outcome = &task.OutcomeRef{Epoch: h.Epoch, Inline: []byte(strings.Repeat("o", 300))}
		})
	}},
	{"poll of a task that has ended", cost{0, 0, 1}, func(t *testing.T, s *place, h *task.Head) { is(t, s, *h) }},
	{"first round of a call", cost{1, 0, 0}, func(t *testing.T, s *place, h *task.Head) { claimed(t, s, use(h.ID, 1, 1), true) }},
	{"its response", cost{1, 0, 0}, func(t *testing.T, s *place, h *task.Head) {
		must(t, s.Finish(t.Context(), use(h.ID, 1, 1), []byte(strings.Repeat("r", 500))))
	}},
	{"look for due tasks", cost{0, 0, 8}, func(t *testing.T, s *place, _ *task.Head) {
		for shard := range task.Shards {
			_, err := s.Due(t.Context(), now, shard, 100)
			must(t, err)
		}
	}},
}

func commit(t *testing.T, s *place, h *task.Head, edit func(*task.Head), parts ...task.Part) {
	t.Helper()
	*h = edited(*h, edit)
	must(t, s.Commit(t.Context(), now, *h, parts...))
}

// TestCosts counts what a task's life costs. Each emulator leaves something out: Dynalite what is
// written to the index and a Query that finds nothing, MiniStack what a Query reads beyond one
// unit.
func TestCosts(t *testing.T) {
	t.Parallel()
	var spent [2][]cost
	for n, name := range []string{"ministack", "dynalite"} {
		m := &meter{}
		cfg := m.on(emulatorNamed(name).start(t))
		s := open(t, cfg, newTable(t, cfg))
		h := head("019bf2f4-7c1e-8a3b-9d7e-0123456789ab")
		h.Tool, h.Traceparent, h.Owner = "provision", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", [32]byte{1}
		h.Sent, h.Wake, h.Poll, h.Format = now, now.Add(30*time.Second), time.Second, 1
		for _, step := range life {
			step.do(t, s, &h)
			spent[n] = append(spent[n], m.take())
		}
	}
	for n, step := range life {
		got := cost{spent[0][n].writes, spent[0][n].index, max(spent[0][n].reads, spent[1][n].reads)}
		if got.writes != spent[1][n].writes {
			t.Errorf("%s: %g units of writing by one emulator, %g by the other", step.name, got.writes, spent[1][n].writes)
		}
		if got != step.want {
			t.Errorf("%s costs %v, want %v", step.name, got, step.want)
		}
		t.Logf("%-32s %v", step.name, got)
	}
}
