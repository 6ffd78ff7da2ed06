package deploy

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/pypi"
)

//go:embed client.py
var program string

// client is a process of FastMCP's client, which has listed the tools.
type client struct {
	in    io.Writer
	lines chan string
	tools []string
}

// said is what came of what the client was told to do: a question meanwhile, or the end.
type said struct {
	Tools          []string
	Asked, Request string
	Result         json.RawMessage
	Status, Error  string
}

func (s said) String() string {
	return fmt.Sprintf("tools %q, question %q of %q, result %s, status %q, error %q", s.Tools, s.Asked, s.Request, s.Result, s.Status, s.Error)
}

// client starts one of a caller at a door.
func (d *door) client(t *testing.T, caller string) *client {
	t.Helper()
	python, err := pypi.Install(t.Context(), "fastmcp")
	if err != nil {
		t.Fatal(err)
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	cmd := exec.Command(python, "-c", program, d.url, d.keys[caller])
	cmd.Stdin = stdin
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "FASTMCP_CHECK_FOR_UPDATES=off")
	scanner := fixture.Start(t, cmd)
	stdin.Close() // the process has its own copy
	c := &client{in, make(chan string), nil}
	go func() {
		defer close(c.lines)
		for scanner.Scan() {
			if strings.HasPrefix(scanner.Text(), "{") { // else it is a warning
				c.lines <- scanner.Text()
			}
		}
	}()
	c.tools = c.do(t, told{What: "list"}).Tools
	return c
}

// told is what the client is told to do.
type told struct {
	What      string `json:"what"`
	Tool      string `json:"tool,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
	Task      string `json:"task,omitempty"`
}

// do tells the client what to do, and waits for the end or a question.
func (c *client) do(t *testing.T, what told) said {
	t.Helper()
	return c.send(t, what)
}

// answer answers the question that the client was asked.
func (c *client) answer(t *testing.T, content map[string]any) said {
	t.Helper()
	return c.send(t, map[string]any{"action": "accept", "content": content})
}

// patience is how long the client may be about one thing. A task of provision_environment
// looks every quarter of a minute whether it is done.
const patience = 90 * time.Second

func (c *client) send(t *testing.T, line any) (s said) {
	t.Helper()
	if err := json.NewEncoder(c.in).Encode(line); err != nil {
		t.Fatal(err)
	}
	select {
	case answer, ok := <-c.lines:
		if !ok {
			t.Fatal("the client ended")
		}
		if err := json.Unmarshal([]byte(answer), &s); err != nil {
			t.Fatalf("%v in %s", err, answer)
		}
	case <-time.After(patience):
		t.Fatalf("after %v still nothing came of %v", patience, line)
	}
	return s
}
