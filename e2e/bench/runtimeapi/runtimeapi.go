// Package runtimeapi times a function behind the Lambda Runtime API: its cold start, and the calls
// after it.
package runtimeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"time"

	"github.com/thaw-mcp/thaw/e2e/bench/mcpcall"
	"github.com/thaw-mcp/thaw/internal/gatewaysim"
	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// patience bounds one start.
const patience = 20 * time.Second

// Event is the request as a Function URL hands it to the function.
func Event() (event []byte) {
	door := gatewaysim.FunctionURL(gatewaysim.Buffered(func(_ context.Context, e []byte) ([]byte, error) {
		event = e
		return []byte(`{"statusCode":204}`), nil
	}), nil)
	door.ServeHTTP(httptest.NewRecorder(), mcpcall.NewRequest("localhost"))
	return event
}

// CheckAnswer reports what is wrong with a function's answer to Event.
func CheckAnswer(b []byte) error {
	var answer struct {
		StatusCode int
		Headers    map[string]string
		Body       string
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return fmt.Errorf("%w in %s", err, b)
	}
	return mcpcall.Check(answer.StatusCode, "", []byte(answer.Body))
}

// CheckAny takes any answer: for functions that do not speak HTTP.
func CheckAny(b []byte) error {
	if len(b) == 0 {
		return errors.New("empty answer")
	}
	return nil
}

// Times are what one function took.
type Times struct {
	Start time.Duration   // from its start to its first answer's arrival
	Warm  []time.Duration // of each further call, from waking the function to its answer's arrival
}

// Measure starts a function and calls it 1 + warm times, one after the other.
func Measure(ctx context.Context, path string, warm int, check func([]byte) error) (Times, error) {
	event := Event()
	var log bytes.Buffer
	f := lambdasim.New(lambdasim.Config{Program: path, MemoryMB: 256, Timeout: patience, Log: &log,
		Env: []string{"THAW_AUTH=none", "THAW_STORE=none", "THAW_STATE_KEY=none"}})
	defer f.Close()
	call := func() (time.Duration, error) {
		began := time.Now()
		answer, err := f.InvokeStream(ctx, event) // which returns when the answer begins, not when the function is done
		took := time.Since(began)
		if err != nil {
			f.Close() // whose log is whole then
			return 0, fmt.Errorf("%s: %w: %s", path, err, log.Bytes())
		}
		defer answer.Close()
		b, err := io.ReadAll(answer)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		return took, check(b)
	}
	start, err := call()
	if err != nil {
		return Times{}, err
	}
	t := Times{Start: start}
	for range warm {
		took, err := call()
		if err != nil {
			return Times{}, err
		}
		t.Warm = append(t.Warm, took)
	}
	if f.Started() != 1 {
		return Times{}, fmt.Errorf("%s was started %d times", path, f.Started())
	}
	return t, nil
}
