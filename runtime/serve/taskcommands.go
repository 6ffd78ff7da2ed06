package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/task"
)

// listAhead is how far ahead ls looks in a store that lists only what is due. Such a store
// leaves out what has expired by then, so farther is not more.
const listAhead = time.Hour

// tasksCommand shows an operator the tasks in the store, whoever owns them, and cancels them or
// has workers told of them again.
func (p *program) tasksCommand(ctx context.Context, args []string) error {
	if len(args) == 0 || !slices.Contains([]string{"ls", "show", "cancel", "redrive"}, args[0]) {
		return fmt.Errorf("%w: tasks takes ls, show, cancel or redrive\n%s", errUsage, usage)
	}
	limit, values := 20, false
	rest, err := p.parseFlags("tasks "+args[0], args[1:], func(f *flag.FlagSet) {
		switch args[0] {
		case "ls":
			f.IntVar(&limit, "n", limit, "")
		case "show":
			f.BoolVar(&values, "values", false, "")
		}
	})
	switch {
	case err != nil:
		return err
	case limit < 1:
		return fmt.Errorf("%w: tasks ls -n %d; allowed is 1 or more\n%s", errUsage, limit, usage)
	case args[0] == "ls" && len(rest) > 0:
		return fmt.Errorf("%w: tasks ls takes no arguments\n%s", errUsage, usage)
	case args[0] != "ls" && len(rest) != 1:
		return fmt.Errorf("%w: tasks %s takes the id of a task\n%s", errUsage, args[0], usage)
	}
	r, err := p.ready(false)
	if err != nil {
		return err
	}
	defer r.close()
	o := operatorOf{r.handler.store, r.handler.engine, r.handler.now(), p.out}
	if o.engine == nil {
		return errors.New("there are no tasks: THAW_STORE names no store that keeps them")
	}
	if r.handler.dispatcher != nil {
		// Messages would end with this process. Without, what it leaves is due at once, and the
		// process that works on tasks sees it in its next sweep.
		o.engine = task.New(o.store, &task.Options{Now: r.handler.now, Logger: r.handler.logger})
	}
	switch args[0] {
	case "ls":
		return o.list(ctx, limit)
	case "show":
		return found(o.show(ctx, rest[0], values))
	case "cancel":
		return found(o.cancel(ctx, rest[0]))
	}
	return found(o.redrive(ctx, rest[0]))
}

func found(err error) error {
	if errors.Is(err, task.ErrNotFound) {
		return errors.New("there is no such task: it never was, or has expired")
	}
	return err
}

// operatorOf is what an operator can do with the tasks of a store.
type operatorOf struct {
	store  task.Store
	engine *task.Engine
	now    time.Time
	out    io.Writer
}

func (o *operatorOf) list(ctx context.Context, limit int) error {
	heads, only, err := o.heads(ctx, limit)
	if err != nil {
		return err
	}
	if len(heads) > 0 {
		t := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ID\tTOOL\tSTATUS\tCREATED\tNEXT")
		for i := range heads {
			h := &heads[i]
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", h.ID, h.Tool, h.Status, moment(h.Created), whatNext(h))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	switch {
	case only:
		fmt.Fprintln(o.out, "this store lists only tasks that are due within an hour; those that sleep longer, wait for their client or have ended are not shown")
	case len(heads) == 0:
		fmt.Fprintln(o.out, "no tasks")
	case len(heads) == limit:
		fmt.Fprintf(o.out, "the last %d; -n says how many\n", limit)
	}
	return nil
}

// heads are the tasks that the store can list. only says that those that are not due are left out.
func (o *operatorOf) heads(ctx context.Context, limit int) (heads []task.Head, only bool, err error) {
	if lister, ok := o.store.(task.Lister); ok {
		heads, err = lister.Recent(ctx, limit)
		return heads, false, err
	}
	sweeper, ok := o.store.(task.Sweeper)
	if !ok {
		return nil, true, errors.New("this store cannot list tasks; tasks show takes the id of one")
	}
	for shard := range task.Shards {
		ids, err := sweeper.Due(ctx, o.now.Add(listAhead), shard, limit)
		if err != nil {
			return nil, true, err
		}
		for _, id := range ids {
			h, err := o.store.Head(ctx, id)
			if errors.Is(err, task.ErrNotFound) { // the index may lag
				continue
			}
			if err != nil {
				return nil, true, err
			}
			heads = append(heads, h)
		}
	}
	slices.SortFunc(heads, func(a, b task.Head) int { return a.Wake.Compare(b.Wake) })
	return heads[:min(limit, len(heads))], true, nil
}

// head is that of a task which has not expired.
func (o *operatorOf) head(ctx context.Context, id string) (task.Head, error) {
	h, err := o.store.Head(ctx, id)
	if err == nil && !h.Expires.IsZero() && !h.Expires.After(o.now) {
		err = task.ErrNotFound
	}
	return h, err
}

func (o *operatorOf) cancel(ctx context.Context, id string) error {
	h, err := o.head(ctx, id)
	if err != nil {
		return err
	}
	if h.Status.Terminal() {
		fmt.Fprintf(o.out, "%s  has ended already: %s\n", id, h.Status)
		return nil
	}
	if err := o.engine.Cancel(ctx, id, h.Owner); err != nil {
		return err
	}
	if h, err = o.head(ctx, id); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s  %s; next: %s\n", id, h.Status, whatNext(&h))
	return nil
}

func (o *operatorOf) redrive(ctx context.Context, id string) error {
	h, told, err := o.engine.Redrive(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case h.Phase == task.Done:
		return fmt.Errorf("the task has ended: %s", h.Status)
	case !told:
		return fmt.Errorf("no worker may take the task now; next: %s", whatNext(&h))
	}
	fmt.Fprintf(o.out, "%s  workers are told of it again\n", id)
	return nil
}

func (o *operatorOf) show(ctx context.Context, id string, values bool) error {
	h, err := o.head(ctx, id)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	for _, field := range [][2]string{
		{"id", h.ID}, {"tool", fmt.Sprintf("%s, revision %d", h.Tool, h.Revision)}, {"status", string(h.Status)},
		{"message", quotedText(h.Message)}, {"next", whatNext(&h)},
		{"created", moment(h.Created)}, {"updated", moment(h.Updated)}, {"expires", moment(h.Expires)},
		{"claims", fmt.Sprintf("%d, interrupted %d in a row", h.Claims, h.Interrupted)}, {"worker", h.Worker},
		{"told", fmt.Sprintf("%s, %d times more since something happened", moment(h.Sent), h.Sends)},
	} {
		if field[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", field[0], field[1])
		}
	}
	s, err := o.engine.Show(ctx, h)
	if err != nil {
		return err
	}
	for _, q := range s.Questions {
		fmt.Fprintf(t, "asks\t%q%s\n", q.Key, shown(q.Data, values))
	}
	if err := o.journal(ctx, t, &h, values); err != nil {
		return err
	}
	if s.Outcome != nil {
		fmt.Fprintf(t, "outcome\t%s%s\n", h.Status, shown(s.Outcome, values))
	}
	return t.Flush()
}

// journal shows what the task has recorded, in order, and the answers that it has got.
func (o *operatorOf) journal(ctx context.Context, w io.Writer, h *task.Head, values bool) error {
	entries, err := o.store.Parts(ctx, h.ID, task.PartEntry, "", 0, h.Journal)
	if err != nil {
		return err
	}
	for _, e := range entries {
		l, err := journal.ParseLogged(e.Data)
		switch {
		case err != nil:
			fmt.Fprintf(w, "journal\t%d: not readable for this program, %d bytes\n", e.Seq, len(e.Data))
		case l.Asked:
			fmt.Fprintf(w, "journal\t%d: %q asked as %q\n", e.Seq, l.Key, l.Wire)
		default:
			fmt.Fprintf(w, "journal\t%d: %q %s%s\n", e.Seq, l.Key, kindNames[l.Kind], shown(l.Data, values))
		}
	}
	answers, err := o.store.Parts(ctx, h.ID, task.PartAnswer, "", 0, 0)
	if err != nil {
		return err
	}
	for _, a := range answers {
		fmt.Fprintf(w, "answer\t%q%s\n", a.Name, shown(a.Data, values))
	}
	return nil
}

var kindNames = map[journal.Kind]string{journal.Answer: "answered", journal.Value: "recorded", journal.Failure: "failed", journal.Tried: "to be tried again"}

// shown is what of a value is shown: its size, or all of it.
func shown(value []byte, whole bool) string {
	if whole {
		return " " + strings.Map(printable, string(value))
	}
	return fmt.Sprintf(", %d bytes", len(value))
}

func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}

// quotedText keeps what others wrote from moving the terminal's cursor.
func quotedText(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%q", text)
}

// whatNext is what happens to a task next.
func whatNext(h *task.Head) string {
	switch h.Phase {
	case task.Ready:
		return "a worker takes it; looked after at " + moment(h.Wake)
	case task.Running:
		return "at work; taken over if the worker is gone at " + moment(h.LeaseUntil)
	case task.Asking:
		return "waits for its client"
	case task.Sleeping:
		return "sleeps until " + moment(h.Wake)
	}
	return "nothing"
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
