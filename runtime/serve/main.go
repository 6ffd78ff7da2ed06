package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/mctp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task"
)

// Kit is what a binary can do: values only, nothing opens until a setting names it. Kits
// given to Main are merged.
type Kit struct {
	Hosts     []host.Host
	Stores    []task.StoreScheme
	Dispatch  []task.DispatchScheme
	StateKeys []statecodec.KeyScheme
	// Defaults are values of settings that nobody set, on a host with a disk of its own.
	Defaults map[string]string
	// Configure has the last word on the options, after the environment.
	Configure func(*Options) error
	// Wrap puts plain middleware and extra routes around the handler; of several the first
	// kit's is outermost.
	Wrap func(http.Handler) http.Handler
}

// Main reads THAW_*, picks the host and serves until SIGINT or SIGTERM. It is the one
// function here that ends the process: 0 stopped, 1 failed, 2 bad settings or usage (all
// of them listed). With arguments it is the binary's own tool box: check, tools, call, apikey.
func Main(s thaw.Server, kits ...Kit) {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "stopping: open requests have some seconds to end; once more ends at once")
		stop()
		<-signals
		os.Exit(1)
	}()
	p := program{server: s, kits: kits, getenv: os.Getenv, environ: os.Environ(), in: os.Stdin, out: os.Stdout, err: os.Stderr}
	os.Exit(p.main(ctx, os.Args[1:]))
}

// Run is Main without the process: it serves until ctx ends. Bad settings, and faults in
// what s declares, are a *BadSettingsError. It knows only the variables it asks for, so a
// misspelt one goes unnoticed; Main finds it.
func Run(ctx context.Context, s thaw.Server, getenv func(string) string, kits ...Kit) error {
	p := program{server: s, kits: kits, getenv: getenv, out: io.Discard, err: os.Stderr}
	return p.serve(ctx)
}

// program is a binary's main with everything outside it handed in.
type program struct {
	server  thaw.Server
	kits    []Kit
	getenv  func(string) string
	environ []string
	in      io.Reader
	out     io.Writer
	err     io.Writer
}

func (p *program) main(ctx context.Context, args []string) int {
	run := p.serve
	if len(args) > 0 {
		command, ok := commands[strings.TrimLeft(args[0], "-")]
		if !ok {
			fmt.Fprintf(p.err, "unknown command %q\n%s", args[0], usage)
			return 2
		}
		run = func(ctx context.Context) error { return command(p, ctx, args[1:]) }
	}
	err := run(ctx)
	var bad *BadSettingsError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errHelp):
		fmt.Fprint(p.out, usage)
		return 0
	case errors.As(err, &bad), errors.Is(err, errUsage):
		fmt.Fprintln(p.err, err)
		return 2
	}
	fmt.Fprintln(p.err, err)
	return 1
}

// ready is a program whose settings hold: what serve, check, tools and call begin with.
type ready struct {
	at          host.Host
	environment *environment
	options     *Options
	handler     *Handler
}

func (p *program) ready(later bool) (*ready, error) {
	var hosts []host.Host
	for _, k := range p.kits {
		hosts = append(hosts, k.Hosts...)
	}
	at := host.Pick(p.getenv, hosts...)
	e := environmentOf(at, p.kits)
	o, problems := configure(p.getenv, e)
	problems = append(problems, unknownSettings(p.environ)...)
	o.Logger, o.later = newLogger(p.err, at), later
	problems = append(problems, configureAuth(p.getenv, e, o)...)
	for _, k := range p.kits {
		if k.Configure != nil {
			if err := k.Configure(o); err != nil {
				problems = append(problems, err.Error())
			}
		}
	}
	if len(problems) == 0 {
		problems = checkWork(o, at)
	}
	// What is wrong with the declarations is told beside what is wrong with the settings.
	h, err := New(p.server, o)
	if err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return nil, &BadSettingsError{problems}
	}
	return &ready{at, e, o, h}, nil
}

// checkStore reports whether a store on this machine can be opened.
func (r *ready) checkStore(ctx context.Context) error {
	if c, ok := r.options.Store.(task.Checker); ok {
		if err := c.Check(ctx); err != nil {
			return fmt.Errorf("THAW_STORE: %w", err)
		}
	}
	return nil
}

// close closes what holds files or connections.
func (r *ready) close() {
	if c, ok := r.options.Store.(io.Closer); ok {
		_ = c.Close() // what is recorded is durable already
	}
}

// newLogger writes lines that people read at a terminal, and JSON where a platform
// collects them.
func newLogger(w io.Writer, at host.Host) *slog.Logger {
	if at.Ephemeral {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

func (p *program) serve(ctx context.Context) error {
	r, err := p.ready(true)
	if err != nil {
		return err
	}
	defer r.close()
	if r.options.role != roleWorker {
		r.handler.warnOpen(r.options.Logger)
	}
	if r.at.Ephemeral && isPrivate(r.options.Store) {
		r.options.Logger.Warn("THAW_STORE is in memory: a task is lost with its instance, and other instances do not know it")
	}
	if r.options.Ready != nil {
		r.options.Ready(r.handler)
	}
	var wrapped http.Handler = r.handler
	for i := range p.kits {
		if wrap := p.kits[len(p.kits)-1-i].Wrap; wrap != nil {
			wrapped = wrap(wrapped)
		}
	}
	if r.options.role == roleWorker {
		wrapped = r.handler.healthOnly()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if r.options.role != roleAPI {
		var working sync.WaitGroup
		working.Go(func() { _ = r.handler.Work(ctx) }) // ends with ctx
		defer func() {
			stop(nil)
			working.Wait()
		}()
	}
	app := host.App{
		HTTP: wrapped,
		Started: func(a net.Addr) {
			p.banner(r, a)
			if r.at.Facts.Resident {
				// An author at a laptop hears of a wrong schema before anything else; a request
				// that waited for the start goes first.
				time.AfterFunc(resolveAfter, func() {
					if err := errors.Join(r.handler.catalog.Load().resolve(), r.checkStore(ctx)); err != nil && ctx.Err() == nil {
						stop(&BadSettingsError{[]string{err.Error()}})
					}
				})
			}
		},
		Logger: r.handler.logger,
		Drain:  r.handler.Drain,
	}
	if r.handler.engine != nil && r.options.role != roleAPI {
		app.RunTask, app.Sweep = r.handler.RunTask, r.handler.Sweep
	}
	err = r.at.Serve(ctx, app)
	var bad *BadSettingsError
	if errors.As(context.Cause(ctx), &bad) {
		return bad
	}
	return err
}

// resolveAfter is how long after the start what is lazy is resolved.
const resolveAfter = 100 * time.Millisecond

// banner is one line: what runs, where, and how to reach it.
func (p *program) banner(r *ready, a net.Addr) {
	if a == nil || r.at.Ephemeral {
		return // a platform calls, nobody reads
	}
	url := "http://" + displayAddr(a) + r.handler.basePath + "/mcp"
	if r.options.role == roleWorker {
		fmt.Fprintf(p.err, "%s works on tasks and answers at http://%s/health  (%s)\n", p.server.Name, displayAddr(a), p.brought(r, "THAW_STORE", "store"))
		return
	}
	credential := ""
	if len(r.options.Auth) > 0 {
		credential = ` --header "Authorization: Bearer …"`
	}
	also := ""
	if r.options.MCTP {
		also = "MCTP at http://" + displayAddr(a) + r.handler.basePath + "/" + mctp.PathDiscovery + ", "
	}
	fmt.Fprintf(p.err, "%s serves MCP at %s  (%s%s, %s, %s)  try: npx @modelcontextprotocol/inspector --cli %s%s --protocol-era modern --method tools/list (Node 22)\n",
		p.server.Name, url, also, p.authText(r), p.brought(r, "THAW_STORE", "store"), p.brought(r, "THAW_STATE_KEY", "state key"), url, credential)
}

// brought says what a setting is, be it set or the default of a kit.
func (p *program) brought(r *ready, name, what string) string {
	value := strings.TrimSpace(p.getenv(name))
	if value == "" {
		value = r.environment.defaults[name]
	}
	if value == "" || value == "none" {
		return "no " + what
	}
	return what + " " + value
}

// authText is what the banner says of who may call.
func (p *program) authText(r *ready) string {
	text := p.brought(r, "THAW_AUTH", "auth")
	if text == "no auth" && len(r.options.Auth) > 0 {
		return "auth" // a kit's own
	}
	return text
}

// warnOpen says what the settings of a server leave open that serves calls.
func (h *Handler) warnOpen(logger *slog.Logger) {
	h.warnAnonymous(logger)
	if h.codec == nil && !h.local {
		logger.Warn("THAW_STATE_KEY=none: a call that asks its user fails")
	}
	if h.codec != nil && h.store == nil {
		logger.Warn("THAW_STORE=none: an answer to a question can be used again until its state expires")
	}
	if h.engine != nil {
		return
	}
	var refused []string
	for name, t := range h.catalog.Load().tools {
		if t.Tasks == declared.TaskRequired {
			refused = append(refused, name)
		}
	}
	if len(refused) > 0 {
		slices.Sort(refused)
		logger.Warn("THAW_STORE=none: these tools run as tasks alone, and there are none", "refused", refused)
	}
}

// warnAnonymous says what nobody keeps strangers from, and what nobody can use.
func (h *Handler) warnAnonymous(logger *slog.Logger) {
	if len(h.auth) > 0 {
		return
	}
	if !h.local {
		logger.Warn("THAW_AUTH=none: whoever reaches this server may call every tool")
	}
	var locked []string
	for what, scopes := range h.catalog.Load().allScopes {
		if len(scopes) > 0 {
			locked = append(locked, what)
		}
	}
	if len(locked) > 0 {
		slices.Sort(locked)
		logger.Warn("THAW_AUTH=none: an anonymous caller has no scopes, and these need some", "refused", locked)
	}
}

// displayAddr is an address that a client on this machine can use.
func displayAddr(a net.Addr) string {
	name, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(name); ip != nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		name = "localhost"
	}
	return net.JoinHostPort(name, port)
}
