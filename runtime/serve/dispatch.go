package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
)

// Where messages about tasks go, and which of its parts a process plays: the setting
// THAW_DISPATCH and what it means together with THAW_ROLE and THAW_STORE.

func dispatchSchemes(e *environment) (usages []string) {
	for _, s := range e.dispatch {
		usages = append(usages, s.Usage)
	}
	return usages
}

func openDispatch(o *Options, value string, e *environment) error {
	if value == "local" {
		if !e.at.Facts.Resident {
			return fmt.Errorf("no process stays on %s", e.at.Name)
		}
		return nil
	}
	name, rest, _ := strings.Cut(value, ":")
	i := slices.IndexFunc(e.dispatch, func(s task.DispatchScheme) bool { return s.Name == name })
	if i < 0 {
		return errNoScheme
	}
	d, err := e.dispatch[i].Open(context.Background(), rest)
	if err != nil {
		return err
	}
	o.Dispatcher = d
	return nil
}

// errNoSweep says that a message that is lost would be a task that is lost.
var errNoSweep = errors.New("messages that leave the process (THAW_DISPATCH) need a store that lists what is due: some are lost, and none waits longer than 15 minutes")

// checkWork finds settings that are right alone and together leave tasks to nobody.
func checkWork(o *Options, at host.Host) (problems []string) {
	worker, external := o.role == roleWorker, o.Dispatcher != nil
	if o.Store == nil {
		if worker {
			problems = append(problems, "THAW_ROLE=worker needs a THAW_STORE: without one there are no tasks")
		}
		if external {
			problems = append(problems, "THAW_DISPATCH needs a THAW_STORE: without one there are no tasks")
		}
		return problems
	}
	if isPrivate(o.Store) && o.role != roleAll && o.role != "" {
		problems = append(problems, fmt.Sprintf("THAW_ROLE=%s needs a THAW_STORE that other processes see: tasks in this one's memory reach nobody", o.role))
	}
	if worker && !external && !o.Host.Resident {
		problems = append(problems, fmt.Sprintf("THAW_ROLE=worker needs a THAW_DISPATCH on %s, where no process stays to look for tasks", at.Name))
	}
	if external && !at.Messages && o.role != roleAPI {
		problems = append(problems, fmt.Sprintf("THAW_DISPATCH needs THAW_ROLE=api on %s, which is sent no messages: another place has to work on the tasks", at.Name))
	}
	return problems
}

// Sweep looks for tasks that are due, those included whose worker died or whose message was
// lost, and has messages sent about them. Something has to call it each minute where no
// process stays; Work does by itself. The error joins the store's, after everything was tried.
func (h *Handler) Sweep(ctx context.Context) error {
	if h.engine == nil {
		return errors.New("there are no tasks without a store and a dispatcher")
	}
	_, err := h.engine.Sweep(ctx)
	return err
}

// healthOnly is what a worker answers over HTTP: that it lives.
func (h *Handler) healthOnly() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, h.basePath) {
		case "/health", "/healthz":
			health(w, r)
		default:
			q := &request{h: h, w: w, r: r}
			q.out.init(h, w, r)
			q.fail(&failure{status: http.StatusNotFound, code: mcp.CodeInvalidRequest, reason: reasonNotFound,
				message: "Not found: this process works on tasks and answers at /health alone"})
		}
	})
}
