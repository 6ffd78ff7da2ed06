// Demo builds functions/server, starts it, and drives it with the official Go SDK's client,
// whose user agrees to what is asked; has a task survive the death of its process; has curl use the
// tools over MCTP; then runs the same binary under AWS's Lambda Runtime Interface Emulator and makes
// the same call as an API Gateway event. Everything is on loopback and ends with the program.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	text     = "The new release is wonderful. The old installer was horrible! I love the documentation."
	emulator = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	fmt.Println("\ndemo: ok")
}

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "thaw-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	section("build functions/server, one binary for the laptop and for Lambda")
	binary := filepath.Join(folder, "server")
	if err := build(ctx, binary); err != nil {
		return err
	}
	if err := local(ctx, folder, binary); err != nil {
		return fmt.Errorf("local: %w", err)
	}
	if err := task(ctx, folder, binary); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	if err := mctp(ctx, folder, binary); err != nil {
		return fmt.Errorf("mctp: %w", err)
	}
	if err := lambda(ctx, folder, binary); err != nil {
		return fmt.Errorf("lambda: %w", err)
	}
	return nil
}

func section(title string) { fmt.Printf("\n== %s\n", title) }

// build builds functions/server in its own module.
func build(ctx context.Context, binary string) error {
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/thaw-mcp/thaw").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	c := exec.CommandContext(ctx, "go", "build", "-o", binary, "./functions/server")
	c.Dir, c.Stderr, c.Env = strings.TrimSpace(string(module)), os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	return c.Run()
}

// started is a process that ends with stop.
type started struct {
	cmd *exec.Cmd
	err *bufio.Scanner
}

// start runs a program in folder, with these settings and nothing else of ours.
func start(ctx context.Context, folder string, env []string, name string, args ...string) (*started, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = folder
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 15 * time.Second
	pipe, err := c.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &started{c, bufio.NewScanner(pipe)}, nil
}

func (s *started) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	for s.err.Scan() { // a full pipe would keep it from ending
	}
	return s.cmd.Wait()
}

// local serves on a free port and talks to it as a client would.
func local(ctx context.Context, folder, binary string) (err error) {
	files, err := makeFiles(folder)
	if err != nil {
		return err
	}
	section("start it: " + filepath.Base(binary))
	server, url, err := serve(ctx, folder, []string{"THAW_ADDR=localhost:0", "FILES_ROOT=" + files}, binary)
	if err != nil {
		return err
	}
	defer func() {
		section("stop it in order (SIGTERM)")
		err = errors.Join(err, server.stop())
	}()

	progress := make(chan string, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
			progress <- fmt.Sprintf("progress %v of %v %s", n.Params.Progress, n.Params.Total, n.Params.Message)
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Printf("the user is asked: %s\nthe user agrees\n", r.Params.Message)
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer session.Close()
	section("discover")
	info := session.InitializeResult()
	fmt.Printf("%s, protocol %s\n", info.ServerInfo.Name, info.ProtocolVersion)

	section("list")
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, t := range tools.Tools {
		fmt.Printf("%s: %s\n", t.Name, t.Description)
	}

	section("call")
	if err := call(ctx, session, &mcp.CallToolParams{Name: "text_analysis", Arguments: map[string]any{"text": text}}, false); err != nil {
		return err
	}
	section("a wrong call: the model reads what to mend")
	if err := call(ctx, session, &mcp.CallToolParams{Name: "text_analysis", Arguments: map[string]any{"txt": text, "language": 7}}, true); err != nil {
		return err
	}
	section("an unknown tool: a protocol error")
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "nope"})
	if err == nil {
		return errors.New("an unknown tool was called")
	}
	fmt.Println(err)
	section("a call with progress: the answer becomes a stream")
	params := &mcp.CallToolParams{Name: "text_analysis", Arguments: map[string]any{"text": text}}
	params.SetProgressToken("demo")
	if err := call(ctx, session, params, false); err != nil {
		return err
	}
	for range 3 { // one a sentence; the client hands them over in its own time
		select {
		case p := <-progress:
			fmt.Println(p)
		case <-ctx.Done():
			return errors.New("no progress came")
		}
	}
	section("a call that asks: it ends with a question, and goes on with the answer")
	if err := call(ctx, session, &mcp.CallToolParams{Name: "delete_files", Arguments: map[string]any{"files": []string{"draft.txt"}}}, false); err != nil {
		return err
	}
	left, err := os.ReadDir(files)
	if err != nil {
		return err
	}
	if len(left) != 1 || left[0].Name() != "report.txt" {
		return fmt.Errorf("left in the folder is %v, want report.txt alone", left)
	}
	fmt.Println("left in the folder:", left[0].Name())
	return nil
}

// makeFiles makes a folder with files that the demo may delete.
func makeFiles(folder string) (string, error) {
	files := filepath.Join(folder, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"draft.txt", "report.txt"} {
		if err := os.WriteFile(filepath.Join(files, name), nil, 0o644); err != nil {
			return "", err
		}
	}
	return files, nil
}

// call prints a result that is, or is not, an error.
func call(ctx context.Context, session *mcp.ClientSession, params *mcp.CallToolParams, isError bool) error {
	r, err := session.CallTool(ctx, params)
	if err != nil {
		return err
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			fmt.Printf("isError=%v  %s\n", r.IsError, t.Text)
		}
	}
	if r.IsError != isError {
		return fmt.Errorf("isError is %v", r.IsError)
	}
	return nil
}

// lambda makes the same call as an API Gateway event through the Lambda Runtime API.
func lambda(ctx context.Context, folder, binary string) (err error) {
	section("the same binary on Lambda (AWS's Runtime Interface Emulator)")
	out, err := exec.CommandContext(ctx, "go", "tool", "-n", emulator).Output()
	if err != nil {
		return fmt.Errorf("build the emulator: %w", err)
	}
	invoke, api := freeAddr(), freeAddr()
	settings := []string{"THAW_AUTH=none", "THAW_STORE=none", "THAW_STATE_KEY=none", "AWS_LAMBDA_FUNCTION_TIMEOUT=20"}
	function, err := start(ctx, folder, settings, strings.TrimSpace(string(out)),
		"--runtime-interface-emulator-address", invoke, "--runtime-api-address", api, "--log-level", "error", binary)
	if err != nil {
		return err
	}
	defer func() { _ = function.stop() }() // the emulator ends by its signal, which is no failure
	go func() {
		for function.err.Scan() {
			fmt.Println(function.err.Text())
		}
	}()
	event, err := apiGatewayEvent()
	if err != nil {
		return err
	}
	section("an API Gateway (HTTP API) event")
	answer, err := post(ctx, "http://"+invoke+"/2015-03-31/functions/function/invocations", event)
	if err != nil {
		return err
	}
	var response struct {
		StatusCode int               `json:"statusCode"`
		Headers    map[string]string `json:"headers"`
		Body       string            `json:"body"`
	}
	if err := json.Unmarshal(answer, &response); err != nil {
		return err
	}
	fmt.Printf("statusCode %d\n%s\n", response.StatusCode, response.Body)
	if response.StatusCode != http.StatusOK || !strings.Contains(response.Body, `"resultType":"complete"`) {
		return fmt.Errorf("unexpected answer: %s", answer)
	}
	return nil
}

func apiGatewayEvent() ([]byte, error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "text_analysis", "arguments": map[string]any{"text": text},
		"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{}},
	}})
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": "/mcp", "rawQueryString": "",
		"headers": map[string]string{"content-type": "application/json", "accept": "application/json, text/event-stream", "host": "api.example.com",
			"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "text_analysis"},
		"requestContext": map[string]any{"stage": "$default", "requestId": "demo", "domainName": "api.example.com",
			"http": map[string]string{"method": "POST", "path": "/mcp", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.10"}},
		"body": string(body), "isBase64Encoded": false,
	})
}

// post waits for the emulator to listen and sends it one event.
func post(ctx context.Context, url string, event []byte) ([]byte, error) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(event))
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(r)
		if errors.Is(err, syscall.ECONNREFUSED) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(20 * time.Millisecond):
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return io.ReadAll(resp.Body)
	}
}

// freeAddr is an address of this machine that nobody listened on a moment ago.
func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}
