package lambdasim

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// maxAsync is the largest event of an asynchronous invocation ("Lambda quotas").
const maxAsync = 1 << 20

// Async is the operation Invoke of Lambda's API for asynchronous invocations alone: an
// http.Handler behind AWS_ENDPOINT_URL_LAMBDA. An invocation that fails is not tried again
// (MaximumRetryAttempts 0), and nobody hears of it. The zero value knows no functions.
type Async struct {
	runs sync.WaitGroup

	mu        sync.Mutex
	functions map[string]*Function
}

// Add makes a function known by a name.
func (a *Async) Add(name string, f *Function) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.functions == nil {
		a.functions = map[string]*Function{}
	}
	a.functions[name] = f
}

// Wait returns when all invocations have ended. There may be no new ones meanwhile.
func (a *Async) Wait() { a.runs.Wait() }

// ServeHTTP implements http.Handler.
func (a *Async) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", a.invoke)
	mux.ServeHTTP(w, r)
}

func (a *Async) invoke(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	f := a.functions[r.PathValue("name")]
	a.mu.Unlock()
	if f == nil {
		decline(w, http.StatusNotFound, "ResourceNotFoundException")
		return
	}
	if r.Header.Get("X-Amz-Invocation-Type") != "Event" {
		decline(w, http.StatusBadRequest, "InvalidParameterValueException")
		return
	}
	event, err := io.ReadAll(io.LimitReader(r.Body, maxAsync+1))
	if err != nil || len(event) > maxAsync {
		decline(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException")
		return
	}
	a.runs.Go(func() { _, _ = f.Invoke(context.Background(), event) })
	w.WriteHeader(http.StatusAccepted)
}

// decline is an error as the API says it.
func decline(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("X-Amzn-ErrorType", kind)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"Message":"`+kind+`"}`)
}
