package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

const usage = `usage: without arguments the program serves; the commands are
  check             settings and schemas, without serving
  tools [-json]     the tools that would be served
  call [-json] NAME [ARGUMENTS|-]
                    one call of a tool in this process; ARGUMENTS is a JSON object,
                    - reads it from standard input. What the tool asks is asked here
  keys new|list|rotate [FILE]
  keys retire [-now] [FILE]
                    the state keys in a file; default is the file that THAW_STATE_KEY
                    names, or .thaw/state.key. retire removes keys replaced 24 h ago
  apikey new NAME [SCOPE ...]
                    a key for the caller NAME, and its line for the file of THAW_API_KEYS
  tasks ls [-n 20]  the tasks that were created last, whoever owns them; where the store
                    cannot list them, those that are due within the hour
  tasks show [-values] ID
                    one of them: how it stands, what it asks and has recorded; with -values
                    also what its caller and its steps said
  tasks cancel|redrive ID
                    cancels it, or has workers told of it again
`

var (
	errUsage = errors.New("usage")
	errHelp  = errors.New("help") // asked for, which is no failure
)

// commands are the binary's own tool box.
var commands = map[string]func(p *program, ctx context.Context, args []string) error{
	"check":  (*program).checkCommand,
	"tools":  (*program).toolsCommand,
	"call":   (*program).callCommand,
	"keys":   (*program).keysCommand,
	"apikey": (*program).apiKeyCommand,
	"tasks":  (*program).tasksCommand,
	"help":   (*program).helpCommand,
	"h":      (*program).helpCommand,
}

func (p *program) helpCommand(context.Context, []string) error {
	fmt.Fprint(p.out, usage)
	return nil
}

// parseFlags parses the flags of a command; what is left are its arguments.
func (p *program) parseFlags(name string, args []string, declare func(*flag.FlagSet)) ([]string, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if declare != nil {
		declare(flags)
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, errHelp
	} else if err != nil {
		return nil, fmt.Errorf("%w: %s: %v\n%s", errUsage, name, err, usage)
	}
	return flags.Args(), nil
}

func (p *program) checkCommand(ctx context.Context, args []string) error {
	rest, err := p.parseFlags("check", args, nil)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: check takes no arguments\n%s", errUsage, usage)
	}
	r, err := p.ready(false)
	if err != nil {
		return err
	}
	defer r.close()
	if err := errors.Join(r.handler.catalog.Load().resolve(), r.checkStore(ctx)); err != nil {
		return &BadSettingsError{[]string{err.Error()}}
	}
	fmt.Fprintf(p.out, "ok: host %s, %d tools, %d prompts, %d resources, %d templates\n",
		r.at.Name, len(r.handler.catalog.Load().tools), len(p.server.Prompts), len(p.server.Resources), len(p.server.ResourceTemplates))
	return nil
}

func (p *program) toolsCommand(_ context.Context, args []string) error {
	var asJSON bool
	rest, err := p.parseFlags("tools", args, func(f *flag.FlagSet) { f.BoolVar(&asJSON, "json", false, "") })
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: tools takes no arguments\n%s", errUsage, usage)
	}
	r, err := p.ready(false)
	if err != nil {
		return err
	}
	items, err := r.handler.catalog.Load().lists[listTools].items()
	if err != nil {
		return err
	}
	for _, it := range items {
		if asJSON {
			fmt.Fprintf(p.out, "%s\n", it.json)
			continue
		}
		description, _ := strictjson.String(strictjson.Member(it.json, "description"))
		first, _, _ := strings.Cut(description, "\n")
		fmt.Fprintf(p.out, "%-24s %s\n", it.name, first)
	}
	return nil
}

// callCommand calls a tool through the same handler that serves, so every check holds.
func (p *program) callCommand(ctx context.Context, args []string) error {
	var asJSON bool
	rest, err := p.parseFlags("call", args, func(f *flag.FlagSet) { f.BoolVar(&asJSON, "json", false, "") })
	if err != nil {
		return err
	}
	if len(rest) < 1 || len(rest) > 2 {
		return fmt.Errorf("%w: call takes the name of a tool and at most one JSON object\n%s", errUsage, usage)
	}
	arguments := []byte("{}")
	if len(rest) == 2 {
		arguments = []byte(rest[1])
	}
	if string(arguments) == "-" {
		if arguments, err = io.ReadAll(p.in); err != nil {
			return fmt.Errorf("read arguments: %w", err)
		}
	}
	r, err := p.ready(false)
	if err != nil {
		return err
	}
	if err := strictjson.Check(arguments, r.handler.limits.depth); err != nil {
		return fmt.Errorf("%w: ARGUMENTS: %v", errUsage, err)
	}
	defer r.close()
	result, err := p.converse(ctx, r.handler, rest[0], arguments)
	if err != nil {
		return err
	}
	if asJSON {
		fmt.Fprintf(p.out, "%s\n", result)
		if strictjson.Kind(memberOf(result, "isError")) == 't' {
			return errors.New("the tool failed")
		}
		return nil
	}
	return p.print(result)
}

// converse calls a tool, round by round.
func (p *program) converse(ctx context.Context, h *Handler, name string, arguments []byte) ([]byte, error) {
	t := terminal{bufio.NewReader(p.in), p.err}
	var more []byte // members of params
	for {
		result, err := h.callTool(ctx, name, arguments, more)
		if err != nil || !strictjson.Is(memberOf(result, "resultType"), "input_required") {
			return result, err
		}
		responses := t.answer(memberOf(result, "inputRequests"))
		more = append([]byte(`,"requestState":`), memberOf(result, "requestState")...)
		more = append(append(more, `,"inputResponses":`...), responses...)
	}
}

// apiKeyCommand makes an API key: on standard output the key and then its line, so that a
// script can take them apart, and on standard error which is which.
func (p *program) apiKeyCommand(_ context.Context, args []string) error {
	rest, err := p.parseFlags("apikey", args, nil)
	if err != nil {
		return err
	}
	if len(rest) < 2 || rest[0] != "new" {
		return fmt.Errorf("%w: apikey takes new, the name of a caller and perhaps scopes\n%s", errUsage, usage)
	}
	key, line, err := auth.NewAPIKey(rest[1], rest[2:])
	if err != nil {
		return fmt.Errorf("%w: %v", errUsage, err)
	}
	fmt.Fprintln(p.err, "the key, for the caller and nobody else; it is shown this once:")
	fmt.Fprintln(p.out, key)
	fmt.Fprintln(p.err, "its line in the file that THAW_API_KEYS=file:PATH names:")
	fmt.Fprintln(p.out, line)
	return nil
}

// print writes a result as a person reads it.
func (p *program) print(raw []byte) error {
	var result mcp.CallToolResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return err
	}
	var text strings.Builder
	for _, c := range result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			fmt.Fprintln(&text, t.Text)
			continue
		}
		b, err := c.AppendJSON(nil)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s\n", b)
	}
	if result.IsError {
		return errors.New(strings.TrimSuffix(text.String(), "\n"))
	}
	fmt.Fprint(p.out, text.String())
	return nil
}

// callTool is one tools/call in memory: the raw result, or the error as it would go out.
// more are further members of its params.
func (h *Handler) callTool(ctx context.Context, name string, arguments, more []byte) ([]byte, error) {
	var params []byte
	params = append(params, `{"_meta":{"`+mcp.MetaProtocolVersion+`":"`+mcp.Version+`","`+mcp.MetaClientCapabilities+`":`+terminalCapabilities+`},"name":`...)
	params = strictjson.AppendString(params, name)
	params = append(append(append(append(params, `,"arguments":`...), arguments...), more...), '}')
	body := append([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+mcp.MethodCallTool+`","params":`), params...)
	body = append(body, '}')
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+h.basePath+"/mcp", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	t := h.catalog.Load().tools[name]
	if t == nil {
		return nil, fmt.Errorf("unknown tool %q; the command tools lists those there are", name)
	}
	r.Header.Set(mcp.HeaderProtocolVersion, mcp.Version)
	r.Header.Set(mcp.HeaderMethod, mcp.MethodCallTool)
	r.Header.Set(mcp.HeaderName, encodeMirrored(name))
	r.Header.Set("Accept", "application/json")
	setMirrored(r.Header, t.bindings, arguments)
	w := &memoryResponse{header: http.Header{}}
	h.answer(&request{h: h, cat: h.catalog.Load(), w: w, r: r, principal: operator})
	if w.body.Len() == 0 {
		return nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	if e := memberOf(w.body.Bytes(), "error"); e != nil {
		text, _ := strictjson.String(memberOf(e, "message"))
		if needs := memberOf(memberOf(e, "data"), "requiredCapabilities"); needs != nil {
			text = fmt.Sprintf("%s %s, which a call in this process does not have", text, needs)
		}
		return nil, errors.New(text)
	}
	return memberOf(w.body.Bytes(), "result"), nil
}

// memoryResponse keeps a response.
type memoryResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *memoryResponse) Header() http.Header         { return w.header }
func (w *memoryResponse) WriteHeader(status int)      { w.status = status }
func (w *memoryResponse) Write(b []byte) (int, error) { return w.body.Write(b) }
