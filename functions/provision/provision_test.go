package provision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/functions/provision"
	"github.com/thaw-mcp/thaw/functions/provision/dircloud"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

// cloud is a place in memory that counts what is asked of it.
type cloud struct {
	mu       sync.Mutex
	networks map[string]string   // network by token
	machines map[string][]string // by token
	live     map[string]bool     // networks
	calls    []string
	fail     map[string]error // by call
	sick     int              // how often Healthy says no
	// hang has the first call of a name wait, after its effect, for the end of its run.
	hang map[string]chan struct{}
}

func newCloud() *cloud {
	return &cloud{networks: map[string]string{}, machines: map[string][]string{}, live: map[string]bool{}, fail: map[string]error{}, hang: map[string]chan struct{}{}}
}

// called notes a call and says how it fails.
func (c *cloud) called(name string) error {
	c.calls = append(c.calls, name)
	return c.fail[name]
}

// hangs waits for the end of ctx if this call is to hang. c.mu is held, and not while it waits.
func (c *cloud) hangs(ctx context.Context, name string) error {
	reached := c.hang[name]
	if reached == nil {
		return nil
	}
	delete(c.hang, name)
	c.mu.Unlock()
	defer c.mu.Lock()
	close(reached)
	<-ctx.Done()
	return ctx.Err()
}

func (c *cloud) CreateNetwork(ctx context.Context, region, token string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("create"); err != nil {
		return "", err
	}
	if c.networks[token] == "" {
		network := fmt.Sprintf("%s-%d", region, len(c.networks)+1)
		c.networks[token], c.live[network] = network, true
	}
	return c.networks[token], c.hangs(ctx, "create")
}

func (c *cloud) StartMachines(ctx context.Context, network, size string, n int, token string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("start"); err != nil {
		return nil, err
	}
	if !c.live[network] {
		return nil, errors.New("no such network")
	}
	if c.machines[token] == nil {
		for i := range n {
			c.machines[token] = append(c.machines[token], fmt.Sprintf("%s/%s-%d", network, size, i+1))
		}
	}
	return c.machines[token], c.hangs(ctx, "start")
}

func (c *cloud) Healthy(context.Context, string, []string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("healthy"); err != nil {
		return false, err
	}
	c.sick--
	return c.sick < 0, nil
}

func (c *cloud) Destroy(_ context.Context, network string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("destroy"); err != nil {
		return err
	}
	delete(c.live, network)
	return nil
}

// mend has a call succeed from now on.
func (c *cloud) mend(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.fail, name)
}

func (c *cloud) did() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.calls, " ")
}

// left is how many networks there are.
func (c *cloud) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.live)
}

type form struct {
	Size  string `json:"size"`
	Count int    `json:"count"`
}

// plain is a client that does not know tasks.
var plain = &thawtest.Options{NoTasks: true}

var (
	west = provision.In{Region: "eu-west1"}
	two  = form{"large", 2}
)

// A client without tasks: the same handler, in the rounds of a plain call.
func TestPlainCall(t *testing.T) {
	for _, tt := range []struct {
		name   string
		world  func(c *cloud)
		form   any
		agrees any // nil: not asked
		want   string
		fails  bool
		did    string
		left   int
	}{
		{"built", nil, two, true, `{Network:eu-west1-1 Machines:[eu-west1-1/large-1 eu-west1-1/large-2] Healthy:true}`, false, "create start healthy", 1},
		{"no plan", nil, thawtest.Decline, nil, "the user gave no plan; nothing was built", true, "", 0},
		{"plan dismissed", nil, thawtest.Dismiss, nil, "the user gave no plan; nothing was built", true, "", 0},
		{"refused", nil, two, false, "the user did not approve; the network was removed", true, "create destroy", 0},
		{"refused, not removed", func(c *cloud) { c.fail["destroy"] = errors.New("locked") }, two, false,
			"the user did not approve; the network eu-west1-1 could not be removed and is still there", true, "create destroy destroy destroy destroy destroy", 1},
		{"no network", func(c *cloud) { c.fail["create"] = errors.New("quota") }, two, nil, "provision_environment failed", true, "create", 0},
		{"no machines", func(c *cloud) { c.fail["start"] = errors.New("quota") }, two, true, "the machines did not start; the network was removed", true, "create start destroy", 0},
		{"broken machines", func(c *cloud) { c.fail["healthy"] = errors.New("burnt") }, two, true, "the machines do not work; the network was removed", true, "create start healthy destroy", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			world := newCloud()
			if tt.world != nil {
				tt.world(world)
			}
			c := thawtest.Start(t, provision.New(world), west, plain)
			if got, want := c.Message("plan"), "What is to be built in eu-west1?"; got != want {
				t.Fatalf("asks %q, want %q", got, want)
			}
			c.Answer(thawtest.Answers{"plan": tt.form})
			if tt.agrees != nil {
				if got, want := c.Message("approve"), "Start machines in eu-west1?\nsize: large, number: 2, network: eu-west1-1"; got != want {
					t.Fatalf("asks %q, want %q", got, want)
				}
				c.Answer(thawtest.Answers{"approve": tt.agrees})
			}
			got := c.Text()
			if !tt.fails {
				got = fmt.Sprintf("%+v", thawtest.Output[provision.Out](c))
			}
			if c.IsError() != tt.fails || !strings.HasPrefix(got, tt.want) || world.did() != tt.did || world.left() != tt.left {
				t.Errorf("error %t, %s; did %q, %d networks left", c.IsError(), got, world.did(), world.left())
			}
		})
	}
}

func TestProgress(t *testing.T) {
	c := thawtest.Start(t, provision.New(newCloud()), west, plain).Answer(thawtest.Answers{"plan": two}).Answer(thawtest.Answers{"approve": true})
	var got []string
	for _, p := range c.Progress() {
		got = append(got, fmt.Sprintf("%v/%v %s", p.Done, p.Total, p.Message))
	}
	want := []string{"1/4 creating the network", "2/4 waiting for approval", "3/4 starting the machines", "4/4 waiting until the machines are healthy"}
	if !slices.Equal(got, want) {
		t.Errorf("progress %q, want %q", got, want)
	}
}

func TestShake(t *testing.T) {
	for name, opts := range map[string]*thawtest.Options{"plain": plain, "task": nil} {
		for _, agrees := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " ", agrees), func(t *testing.T) {
				thawtest.Shake(t, func() *thaw.Tool { return provision.New(newCloud()) }, west, thawtest.Answers{"plan": two, "approve": agrees}, opts)
			})
		}
	}
}

// What is asked for has to be possible, and the form says what is.
func TestRefused(t *testing.T) {
	world := newCloud()
	c := thawtest.Start(t, provision.New(world), provision.In{Region: "sg"}, nil)
	if !c.IsError() && c.Err() == nil || world.did() != "" {
		t.Errorf("a region that does not exist: %+v", c.Result())
	}
	c = thawtest.Start(t, provision.New(world), west, nil).Answer(thawtest.Answers{"plan": form{"large", 21}})
	if c.Done() || !strings.Contains(c.Message("plan"), "did not fit") || world.did() != "" {
		t.Errorf("21 machines: %+v, asks %q", c.Result(), c.Message("plan"))
	}
	c = thawtest.Start(t, provision.New(world), west, &thawtest.Options{NoElicit: true})
	var lack *mcp.Error
	if !errors.As(c.Err(), &lack) || lack.Code != mcp.CodeMissingCapability || world.did() != "" {
		t.Errorf("a client that cannot be asked: %v", c.Err())
	}
}

func TestScopes(t *testing.T) {
	world := newCloud()
	tool := provision.New(world, "env:write")
	if c := thawtest.Start(t, tool, west, nil); c.Err() == nil {
		t.Error("an anonymous caller may build")
	}
	who := &thawtest.Options{Principal: thaw.Principal{Scheme: "test", Subject: "ada", Scopes: []string{"env:write"}}}
	if c := thawtest.Start(t, tool, west, who); c.Message("plan") == "" {
		t.Errorf("a caller with the scope: %v", c.Err())
	}
}

// The tool over what it has on a laptop, one instance after the other.
func TestInAFolder(t *testing.T) {
	folder := t.TempDir()
	c := thawtest.Start(t, provision.New(dircloud.New(folder, nil)), west, nil).Answer(thawtest.Answers{"plan": two})
	c.Replace(provision.New(dircloud.New(folder, nil))).Answer(thawtest.Answers{"approve": false})
	if got, want := c.Text(), "the user did not approve; the network was removed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
