// Package crash kills the processes of a server at every point of a task's life, and at
// random, and looks at what others make of it: no task is lost, and none is done twice. It does
// so on SQLite, where each process does everything, and on DynamoDB and SQS, where some answer
// clients and others are Lambda functions that work.
package crash

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/queue"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

// program is the server, built once for all tests.
var program string

func TestMain(m *testing.M) {
	os.Exit(fixture.Main(m, func(ctx context.Context, folder string) (err error) {
		program, err = fixture.BuildIn(ctx, folder, "./server", "-tags=lambda.norpc")
		return err
	}))
}

// The roles that a process can have, as THAW_ROLE names them: it answers clients, it works, or
// it does both.
const (
	roleAPI    = "api"
	roleWorker = "worker"
	roleAll    = "all"
)

// place is what the processes of a server share: a store, a key, a log, and what brings the
// messages of one to another.
type place struct {
	roles []string
	env   []string // of every process
	log   string
	open  func(t *testing.T) task.Store

	// Of workers that are functions:
	queue    *queue.Queue
	messages <-chan types.Message // of the queue
	schedule <-chan time.Time

	functionTime time.Duration
}

func newPlace(t *testing.T) *place {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	return &place{log: log, functionTime: functionTime, env: []string{
		"CRASH_LOG=" + log, "THAW_AUTH=none", "THAW_STATE_KEY=file:" + fixture.NewKey(t, program),
	}}
}

// onSQLite is a place of processes that do everything and share a file.
func onSQLite(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	file := filepath.Join(t.TempDir(), "tasks.db")
	p.roles = []string{roleAll}
	p.env = append(p.env, "THAW_STORE=sqlite:"+file)
	p.open = func(t *testing.T) task.Store {
		s, err := sqlitestore.Open(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	return p
}

// process is one of a place's.
type process struct {
	*fixture.Process
	role string
	url  string // of its endpoint; a worker has none
}

// start starts a process that dies at a point; "": at none.
func (p *place) start(t *testing.T, role, point string) *process {
	t.Helper()
	env := append(slices.Clone(p.env), "CRASH_AT="+point, "THAW_ROLE="+role)
	if role == roleWorker {
		return &process{p.function(t, env), role, ""}
	}
	s := fixture.Run(t, t.TempDir(), program, env...)
	return &process{s.Process, role, s.URL}
}

// backend is where places are.
type backend struct {
	name string
	// start starts what its places share, and returns what makes one.
	start func(t *testing.T) (place func(t *testing.T) *place)
	// What it can bear: points that are tried at once, and how often clients look at a task; and
	// of the kills at random, how many calls are made meanwhile, and how often each is.
	atOnce               int
	lookEvery            time.Duration
	calls, kills         int
	callEvery, killEvery time.Duration
}

var backends = []backend{
	{
		name: "SQLite", start: func(*testing.T) func(*testing.T) *place { return onSQLite },
		atOnce: len(points), lookEvery: 100 * time.Millisecond,
		calls: 400, callEvery: 25 * time.Millisecond, kills: 100, killEvery: 200 * time.Millisecond,
	},
	{
		name: "DynamoDB and SQS of MiniStack", start: onMiniStack,
		atOnce: 6, lookEvery: 500 * time.Millisecond,
		calls: 200, callEvery: 150 * time.Millisecond, kills: 100, killEvery: 300 * time.Millisecond,
	},
	{
		name: "DynamoDB and SQS of Moto", start: onMoto,
		atOnce: 4, lookEvery: 500 * time.Millisecond,
		calls: 30, callEvery: 800 * time.Millisecond, kills: 20, killEvery: time.Second,
	},
}

// onEach runs a test on each backend, on all at once: an emulator fills one processor, and the
// rest is waiting.
func onEach(t *testing.T, test func(t *testing.T, b *backend, place func(t *testing.T) *place)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, &b, b.start(t))
		})
	}
}
