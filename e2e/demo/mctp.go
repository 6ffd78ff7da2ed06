package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// mctp serves the same tools over MCTP, and has curl make the exchanges that its document shows, and
// the one that people will try.
func mctp(ctx context.Context, folder, binary string) (err error) {
	section("the same tools by plain HTTP: THAW_MCTP=on")
	server, url, err := serve(ctx, folder, []string{"THAW_ADDR=localhost:0", "THAW_MCTP=on"}, binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	base := strings.TrimSuffix(url, "/mcp")

	section("1. discover the tasks there are")
	var found struct{ Endpoints map[string]string }
	if err := curl(ctx, &found, base+"/discovery"); err != nil {
		return err
	}
	endpoint := found.Endpoints["text_analysis"]
	section("2. submit a task")
	var made struct{ ID string }
	if err := curl(ctx, &made, endpoint, "-H", "Content-Type: application/json", "-d", `{"parameters":{"text":"Hello world","language":"en"}}`); err != nil {
		return err
	}
	section("3. check its status, until it is over")
	for head := ""; !strings.Contains(head, "X-Task-Status: completed"); time.Sleep(200 * time.Millisecond) {
		if head, err = runCurl(ctx, "-I", endpoint+"/"+made.ID); err != nil {
			return err
		}
	}
	section("4. look at it, as people will try")
	var task struct{ Status string }
	if err := curl(ctx, &task, endpoint+"/"+made.ID); err != nil {
		return err
	}
	section("5. retrieve its result")
	var ended struct {
		Task   struct{ Status string }
		Result struct{ Sentiment string }
	}
	if err := curl(ctx, &ended, endpoint+"/"+made.ID+"/result"); err != nil {
		return err
	}
	if task.Status != "completed" || ended.Task.Status != "completed" || ended.Result.Sentiment == "" {
		return fmt.Errorf("the task is %s, its result %+v", task.Status, ended)
	}
	return nil
}

// curl runs curl, prints the command and what it gives, and decodes that into v.
func curl(ctx context.Context, v any, args ...string) error {
	out, err := runCurl(ctx, args...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), v)
}

func runCurl(ctx context.Context, args ...string) (string, error) {
	fmt.Print("$ curl -s")
	for _, arg := range args {
		if strings.ContainsAny(arg, " {") {
			arg = "'" + arg + "'"
		}
		fmt.Print(" ", arg)
	}
	fmt.Println()
	c := exec.CommandContext(ctx, "curl", append([]string{"--silent", "--show-error", "--fail-with-body", "--max-time", "20"}, args...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	fmt.Printf("%s\n", strings.TrimSpace(string(out)))
	return string(out), err
}
