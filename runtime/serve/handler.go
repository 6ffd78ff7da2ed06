// Package serve makes an http.Handler of a thaw.Server and runs it on a host.
//
// request.go is one request from its first byte to its last: read it first.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task"
)

// Limits bound what one peer can make the server do (S-12). A zero field is its default.
type Limits struct {
	BodyBytes      int           // of a request's body; 4 MiB
	JSONDepth      int           // arrays and objects inside each other; 128, which is the most
	HeaderBytes    int           // of a request's headers; 32 KiB
	PageItems      int           // of a list; 1,000
	PageBytes      int           // of a list; 1 MiB
	Streams        int           // subscriptions/listen open at a time; 1,000
	RequestTimeout time.Duration // of one request; 0: what the host gives
}

// Options are the settings of a Handler; Main fills them from the environment. The zero
// value serves anonymous callers off loopback without streams.
type Options struct {
	PublicURLs     []string // absolute; their hosts are served on a loopback bind too
	AllowedOrigins []string // scheme://host[:port], compared exactly
	BasePath       string   // what a gateway leaves in front of the fixed paths: "/agents"
	// Auth are the ways to tell who calls, asked in this order; empty: everybody is anonymous.
	// The first that knows the credential or fails decides, and who has none is refused.
	Auth []auth.Scheme
	// Implies says that who has one scope has another too; nil: no scope implies any.
	Implies func(granted, required string) bool
	// AuthorizationServers are the issuers whose tokens Auth takes. Their presence has the
	// handler publish where to log in (RFC 9728), for which PublicURLs must say where it is.
	AuthorizationServers []string
	// ScopesSupported are the scopes to ask for at a first login; empty: those that all tools,
	// prompts and resources have in common.
	ScopesSupported []string

	Only      []string // tools served; empty: all
	Limits    Limits
	StateKeys []statecodec.Key // seal what a call keeps while its client is asked: the first seals, all open; none: nothing can ask
	StateTTL  time.Duration    // how long a client has for one answer; 0: 1 h, at most 24 h
	// Store keeps tasks and what was used once; nil: no tasks, and a state may be used again until
	// it expires.
	Store task.Store
	// Dispatcher tells workers of tasks; nil on a host that stays: this process works on them
	// itself, in Work; nil elsewhere: no tasks.
	Dispatcher task.Dispatcher
	TaskLimits task.Limits
	// MCTP has the tools served over MCTP 0.1 too (docs/mctp.md), for which there has to be a Store
	// and, on a host that does not stay, a Dispatcher.
	MCTP   bool
	Host   host.Facts
	Ready  func(*Handler) // called by Main with the handler, before it serves
	Logger *slog.Logger   // nil: slog.Default
	Now    func() time.Time

	// later leaves resolving what is lazy to a call of resolve, for Main, which does it when
	// it already listens.
	later bool
	role  string // "" is roleAll
	// localURLs stand for PublicURLs in the metadata of a server that only this machine reaches.
	localURLs []string
}

// Handler speaks MCP at /mcp, answers GET /health and /healthz, and publishes metadata below
// /.well-known/oauth-protected-resource. With Options.MCTP every other path is MCTP's. It is safe
// for concurrent use.
type Handler struct {
	catalog    atomic.Pointer[catalog]
	replacing  sync.Mutex
	hub        hub
	host       host.Facts
	local      bool // whoever reaches this server sits at this machine
	localTasks bool // and no other process answers with its tasks
	publicURLs []*url.URL
	origins    []string
	basePath   string
	only       []string
	limits     limits
	logger     *slog.Logger
	now        func() time.Time
	codec      *statecodec.Codec // nil: nothing can ask
	audience   [16]byte          // of sealed state
	store      task.Store        // nil: none
	engine     *task.Engine      // nil: no tasks
	dispatcher *localDispatcher  // nil: messages leave the process
	refusals   refusals
	mctp       bool // served too

	auth            []auth.Scheme
	implies         func(granted, required string) bool
	issuers         []string // empty: no metadata
	scopesSupported []string
	addresses       []address // where there are issuers at least one
}

type limits struct {
	body, depth, headers int
	pageItems, pageBytes int
	streams              int
	request              time.Duration
}

// New makes a Handler. The error joins everything that is wrong with s and o. With
// o.Host.Resident every schema is resolved now; elsewhere on first use, since most of
// what a cold start resolves its first request does not touch. o may be nil; it and the
// lists of s are copied.
func New(s thaw.Server, o *Options) (*Handler, error) {
	if o == nil {
		o = &Options{}
	}
	h := &Handler{
		host:     o.Host,
		origins:  slices.Clone(o.AllowedOrigins),
		basePath: strings.TrimSuffix(o.BasePath, "/"),
		only:     slices.Clone(o.Only),
		mctp:     o.MCTP,
		logger:   o.Logger,
		now:      o.Now,
		auth:     slices.Clone(o.Auth),
		implies:  o.Implies,
		limits: limits{
			body:      orDefault(o.Limits.BodyBytes, 4<<20),
			depth:     min(orDefault(o.Limits.JSONDepth, maxJSONDepth), maxJSONDepth),
			headers:   orDefault(o.Limits.HeaderBytes, 32<<10),
			pageItems: orDefault(o.Limits.PageItems, 1000),
			pageBytes: orDefault(o.Limits.PageBytes, 1<<20),
			streams:   orDefault(o.Limits.Streams, 1000),
			request:   o.Limits.RequestTimeout,
		},
	}
	if h.logger == nil {
		h.logger = slog.Default()
	}
	h.logger = slog.New(logGuard{h.logger.Handler()})
	if h.now == nil {
		h.now = time.Now
	}
	errs := []error{each(h.origins, checkOriginText), each(o.PublicURLs, checkPublicURL), h.setIssuers(o)}
	if i := slices.Index(h.auth, nil); i >= 0 {
		errs = append(errs, fmt.Errorf("auth scheme %d is nil", i))
	}
	if h.basePath != "" {
		errs = append(errs, checkBasePath(h.basePath))
	}
	if _, lists := o.Store.(task.Sweeper); o.Store != nil && o.Dispatcher != nil && !lists {
		errs = append(errs, errNoSweep)
	}
	if o.MCTP && (o.Store == nil || o.Dispatcher == nil && !h.host.Resident) {
		errs = append(errs, errors.New("MCTP (THAW_MCTP=on) needs a Store (THAW_STORE) and, where no process stays, a Dispatcher (THAW_DISPATCH): all that it serves are tasks"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, text := range o.PublicURLs {
		u, _ := url.Parse(text) // checked above
		h.publicURLs = append(h.publicURLs, u)
	}
	if len(o.PublicURLs) > 0 {
		h.audience = statecodec.Audience(o.PublicURLs[0])
	} else {
		h.audience = statecodec.Audience("")
	}
	h.store = o.Store
	if o.Store != nil && (o.Dispatcher != nil || h.host.Resident) {
		dispatcher := o.Dispatcher
		if dispatcher == nil && o.role != roleAPI { // whose tasks another process's sweep finds
			h.dispatcher = newLocalDispatcher()
			dispatcher = h.dispatcher
		}
		h.engine = task.New(o.Store, &task.Options{Dispatcher: dispatcher, Local: h.dispatcher != nil, Now: h.now, Logger: h.logger, Limits: o.TaskLimits})
	}
	if len(o.StateKeys) > 0 {
		codec, err := statecodec.New(o.StateKeys, &statecodec.Options{Now: h.now, TTL: o.StateTTL, Logger: h.logger})
		if err != nil {
			return nil, err
		}
		h.codec = codec
	}
	h.local = h.host.Loopback && len(h.publicURLs) == 0
	h.localTasks = h.local && isPrivate(o.Store)
	c, err := h.compile(s)
	if err != nil {
		return nil, err
	}
	if h.host.Resident && !o.later {
		if err := c.resolve(); err != nil {
			return nil, err
		}
	}
	h.catalog.Store(c)
	if clientLogging(&s) {
		h.logger.Warn("ClientLogging is deprecated by the protocol (SEP-2577), earliest removal 2027-07-28") // D-04
	}
	return h, nil
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// Replace swaps the catalogue atomically and notifies listeners of the lists that
// differ (F-19). Requests under way keep the one they began with. On an error nothing
// has changed.
func (h *Handler) Replace(s thaw.Server) error {
	h.replacing.Lock() // what is kept of the catalogue before must be what is replaced
	defer h.replacing.Unlock()
	after, err := h.compile(s)
	if err == nil && h.host.Resident {
		err = after.resolve()
	}
	if err != nil {
		return err
	}
	before := h.catalog.Swap(after)
	for kind := range listKinds {
		if !before.lists[kind].same(after.lists[kind]) {
			h.hub.listChanged(listKinds[kind].changed)
		}
	}
	return nil
}

// ResourceUpdated notifies the listeners of this process that subscribed to uri, or to
// what it lies below (L-08). It does not wait for them.
func (h *Handler) ResourceUpdated(_ context.Context, uri string) error {
	if u, err := url.Parse(uri); err != nil || u.Scheme == "" {
		return fmt.Errorf("resource %q is no absolute URI", uri)
	}
	var scopes []string
	if r, _ := h.catalog.Load().find(uri); r != nil {
		scopes = r.scopes
	}
	h.hub.resourceUpdated(uri, scopes)
	return nil
}

// Drain ends the event streams of listeners in order (L-12), now and from now on. Hosts
// call it when they begin to stop.
func (h *Handler) Drain() { h.hub.drain() }

// ServeHTTP routes by fixed path, below the base path too.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := h.below(r.URL.Path)
	switch path {
	case "/mcp", "/mcp/":
		h.serveMCP(w, r)
	case "/health", "/healthz":
		health(w, r)
	default:
		if h.serveMetadata(w, r, path) {
			return
		}
		if h.mctp {
			h.serveMCTP(w, r)
			return
		}
		q := &request{h: h, w: w, r: r}
		q.out.init(h, w, r)
		q.fail(&failure{status: http.StatusNotFound, code: mcp.CodeInvalidRequest, reason: reasonNotFound,
			message: "Not found: the MCP endpoint is " + h.basePath + "/mcp"})
	}
}

// below is a path without the prefix that a gateway leaves in front.
func (h *Handler) below(path string) string {
	if rest, ok := strings.CutPrefix(path, h.basePath); ok && strings.HasPrefix(rest, "/") {
		return rest
	}
	return path
}

// belowEscaped is the escaped path of u without that prefix.
func (h *Handler) belowEscaped(u *url.URL) string {
	if h.below(u.Path) == u.Path {
		return u.EscapedPath()
	}
	rest := u.EscapedPath()
	for range strings.Count(h.basePath, "/") { // a client may escape what needs no escaping
		_, rest, _ = strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		rest = "/" + rest
	}
	return rest
}

// health says that the process answers, to probes that know no host name and no origin.
func health(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", "3")
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte("ok\n"))
	}
}
