// Package host runs any http.Handler where it finds itself: on a laptop, on
// Cloud Run, or on a place that another package describes with a Host value
// (AWS Lambda: package lambdahost). It is a leaf: standard library only, and it
// knows nothing of MCP, so a server built with another SDK can be hosted as it is.
package host

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// App is what a host runs.
type App struct {
	// HTTP answers every request. Hosts call it from many goroutines.
	HTTP http.Handler

	// Started is called once the host accepts requests, with the address it
	// listens on; nil where the host has no socket of its own. It may be nil.
	Started func(net.Addr)

	// Logger is for what the host itself has to say; nil is slog.Default.
	Logger *slog.Logger

	// RunTask has the app work on the durable task with this id, as a message said. The message
	// is done with if ack is true; otherwise it is to be shown again, not before after. A host
	// that is sent messages calls it from many goroutines, with the message's visibility in ctx
	// where it can change that. nil: this app works on no tasks.
	RunTask func(ctx context.Context, id string) (ack bool, after time.Duration)

	// Sweep has the app look for tasks that are due. A host calls it when its schedule does;
	// nil: this app works on no tasks.
	Sweep func(ctx context.Context) error

	// Drain is called once, when the host has been told to stop and before it
	// waits for the requests still open. It ends what would otherwise wait for
	// ever, such as event streams. It may be nil.
	Drain func()
}

// Log is a.Logger, or slog.Default.
func (a App) Log() *slog.Logger {
	if a.Logger == nil {
		return slog.Default()
	}
	return a.Logger
}

// Facts are what a place can do. They decide what a server may advertise.
type Facts struct {
	// Resident: this one process runs between requests, so that what changes in it can be
	// told to every client.
	Resident bool
	// Streaming: a response reaches the client while it is being written.
	Streaming bool
	// Loopback: only programs on this machine can connect.
	Loopback bool
}

// Host is a place to run.
type Host struct {
	// Name is what logs and errors call the place.
	Name string
	// Here says whether the process is in this place, judging by its environment.
	Here func(getenv func(string) string) bool
	// Configured is the place as settings of its own make it, for a place that has some; nil: it
	// has none. Pick returns what it returns.
	Configured func(getenv func(string) string) Host
	// Facts are those of the place.
	Facts Facts
	// Ephemeral: the place keeps no disk and no process, so settings that would
	// default to something local have no default here.
	Ephemeral bool
	// Deadlines: the context of each request ends when the platform's time for it does.
	Deadlines bool
	// Messages: the place is sent the messages of tasks, and its schedule, so that it calls the
	// app's RunTask and Sweep.
	Messages bool
	// Serve runs a until ctx ends or the place gives up. It returns nil after an
	// orderly stop.
	Serve func(ctx context.Context, a App) error
}

// Pick returns the first of hosts that is here, as its settings make it; failing that
// CloudRun where K_SERVICE is set; failing that Local.
func Pick(getenv func(string) string, hosts ...Host) Host {
	for _, h := range hosts {
		switch {
		case !h.Here(getenv):
		case h.Configured != nil:
			return h.Configured(getenv)
		default:
			return h
		}
	}
	if h := CloudRun(getenv); h.Here(getenv) {
		return h
	}
	return Local(getenv)
}

// ListenAndServe runs a on the host that is here (see Pick) until ctx ends.
func ListenAndServe(ctx context.Context, a App, hosts ...Host) error {
	return Pick(os.Getenv, hosts...).Serve(ctx, a)
}
