package serve

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/statecodec"
)

// setting is one environment variable. README.md has the same table for readers.
type setting struct {
	name    string
	allowed string // what its value may be, for messages
	read    func(o *Options, value string) error
	// open is read for a value that names what a kit can open.
	open func(o *Options, value string, e *environment) error
	// schemes are what a kit can open under this name.
	schemes func(e *environment) []string
	// explicit: on a host without a disk or process of its own it has no default, so that
	// nobody deploys an open or forgetful server by accident.
	explicit bool
	// secret: a value that is wrong may be a credential in the wrong place; only its scheme
	// is shown.
	secret bool
	// url: shown, but for one that has a user and so perhaps a password.
	url bool
}

// settings are all that a server reads, in the order they are reported.
var settings = slices.Concat(serverSettings, authSettings)

var serverSettings = []setting{
	{name: "THAW_ADDR", allowed: "HOST:PORT; default " + host.DefaultAddr, read: readAddr},
	{name: "THAW_PUBLIC_URL", allowed: "a comma list of absolute URLs", read: func(o *Options, v string) error {
		urls := commaList(v)
		if err := errors.Join(filled(v), each(urls, checkPublicURL)); err != nil {
			return err
		}
		o.PublicURLs = urls
		return nil
	}, url: true},
	{name: "THAW_BASE_PATH", allowed: "a path that begins with a slash, as a gateway leaves it in front of /mcp", read: func(o *Options, v string) error {
		if err := checkBasePath(v); err != nil {
			return err
		}
		o.BasePath = v
		return nil
	}},
	{name: "THAW_ALLOWED_ORIGINS", allowed: "a comma list of scheme://host[:port]", read: func(o *Options, v string) error {
		origins := commaList(v)
		if err := errors.Join(filled(v), each(origins, checkOriginText)); err != nil {
			return err
		}
		o.AllowedOrigins = origins
		return nil
	}},
	{name: "THAW_TOOLS", allowed: "a comma list of the names of tools to serve; default all", read: func(o *Options, v string) error {
		o.Only = commaList(v)
		return filled(v)
	}},
	{name: "THAW_STORE", allowed: "none", explicit: true, secret: true, open: openStore, schemes: storeSchemes},
	{name: "THAW_STATE_KEY", allowed: "none, or a comma list of keys of which the first seals and all open", explicit: true, secret: true, open: openStateKeys, schemes: keySchemes},
	{name: "THAW_STATE_TTL", allowed: "a duration from 1s to 24h; default 1h", read: func(o *Options, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < time.Second || d > statecodec.MaxTTL {
			return errors.New("no such duration")
		}
		o.StateTTL = d
		return nil
	}},
	{name: "THAW_DISPATCH", allowed: "local, where a process stays", url: true, open: openDispatch, schemes: dispatchSchemes},
	// Only checked: the host reads it itself, before anything is configured.
	{name: "THAW_LAMBDA_STREAMING", allowed: "on or off; default off", read: func(_ *Options, v string) error {
		if v != "on" && v != "off" {
			return errors.New("neither on nor off")
		}
		return nil
	}},
	{name: "THAW_MCTP", allowed: "on or off; default off", read: func(o *Options, v string) error {
		if v != "on" && v != "off" {
			return errors.New("no such value")
		}
		o.MCTP = v == "on"
		return nil
	}},
	{name: "THAW_ROLE", allowed: "api, worker or all; default all", read: func(o *Options, v string) error {
		if v != roleAPI && v != roleWorker && v != roleAll {
			return errors.New("no such role")
		}
		o.role = v
		return nil
	}},
	{name: "THAW_MAX_BODY_BYTES", allowed: "a whole number above 0; default 4194304", read: count(math.MaxInt32, func(o *Options, n int) { o.Limits.BodyBytes = n })},
	{name: "THAW_MAX_JSON_DEPTH", allowed: "a whole number from 1 to 128; default 128", read: count(maxJSONDepth, func(o *Options, n int) { o.Limits.JSONDepth = n })},
	{name: "THAW_MAX_HEADER_BYTES", allowed: "a whole number from 1 to 65536; default 32768", read: count(maxHeaderBytes, func(o *Options, n int) { o.Limits.HeaderBytes = n })},
	{name: "THAW_PAGE_ITEMS", allowed: "a whole number above 0; default 1000", read: count(math.MaxInt32, func(o *Options, n int) { o.Limits.PageItems = n })},
	{name: "THAW_MAX_STREAMS", allowed: "a whole number above 0; default 1000", read: count(math.MaxInt32, func(o *Options, n int) { o.Limits.Streams = n })},
	{name: "THAW_REQUEST_TIMEOUT", allowed: "a duration above 0 such as 30s or 5m; default 5m, on Lambda what the function has", read: func(o *Options, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return errors.New("no such duration")
		}
		o.Limits.RequestTimeout = d
		return nil
	}},
}

// What a process does of a server: answer requests, work on tasks, or both.
const (
	roleAPI    = "api"
	roleWorker = "worker"
	roleAll    = "all"
)

// maxJSONDepth is as deep as the digest of arguments goes, which binds a state to its call.
const maxJSONDepth = 128

// maxHeaderBytes is what the plain host takes from net/http before a request gets here.
const maxHeaderBytes = 64 << 10

// defaultRequestTimeout holds where no platform bounds a request.
const defaultRequestTimeout = 5 * time.Minute

// BadSettingsError lists every setting that is wrong; Main exits with 2 on it.
type BadSettingsError struct{ Problems []string }

// Error has one line a problem, or as many as the problem has.
func (e *BadSettingsError) Error() string {
	return "bad settings:\n  " + strings.ReplaceAll(strings.Join(e.Problems, "\n"), "\n", "\n  ")
}

// configure makes Options of the environment. Problems are all of them, each with its
// name, what it said and what is allowed.
func configure(getenv func(string) string, e *environment) (*Options, []string) {
	at := e.at
	o := &Options{Host: at.Facts}
	if !at.Deadlines {
		o.Limits.RequestTimeout = defaultRequestTimeout
	}
	var problems []string
	for _, s := range settings {
		value := e.value(getenv, s.name)
		if value == "" {
			if s.explicit && at.Ephemeral {
				problems = append(problems, fmt.Sprintf("%s must be set on %s: allowed is %s", s.name, at.Name, s.allows(e)))
			}
			continue
		}
		read := s.read
		if s.open != nil {
			read = func(o *Options, value string) error { return s.open(o, value, e) }
		}
		if err := read(o, value); err != nil {
			problems = append(problems, fmt.Sprintf("%s=%s: %v; allowed is %s", s.name, s.shown(value), err, s.allows(e)))
		}
	}
	if port := getenv("PORT"); at.Name == "cloudrun" && port != "" && checkPort(port) != nil {
		problems = append(problems, fmt.Sprintf("PORT=%q: %v", port, checkPort(port)))
	}
	return o, problems
}

// knownSchemes may be shown of a value that is otherwise not.
var knownSchemes = []string{"none", "jwt", "apikey", "gateway", "sqlite", "memory", "dynamodb", "sqs", "lambda", "file", "awskms", "gcpkms", "http", "https"}

// shown is a value as a message may have it.
func (s *setting) shown(value string) string {
	if !s.secret && !(s.url && strings.Contains(value, "@")) {
		return strconv.Quote(value)
	}
	var parts []string
	for _, part := range commaList(value) {
		scheme, _, named := strings.Cut(part, ":")
		switch {
		case !slices.Contains(knownSchemes, scheme):
			return "(not shown)"
		case named:
			scheme += ":…"
		}
		parts = append(parts, scheme)
	}
	return strconv.Quote(strings.Join(parts, ","))
}

// unknownSettings finds THAW_ variables that nothing reads: a misspelt one would
// otherwise be a silent default.
func unknownSettings(environ []string) []string {
	var problems []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "THAW_") && !slices.ContainsFunc(settings, func(s setting) bool { return s.name == name }) {
			problems = append(problems, fmt.Sprintf("%s is no setting of this program; there are %s", name, settingNames()))
		}
	}
	return problems
}

func settingNames() string {
	var names []string
	for _, s := range settings {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

func commaList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func each(items []string, check func(string) error) error {
	var errs []error
	for _, item := range items {
		errs = append(errs, check(item))
	}
	return errors.Join(errs...)
}

func count(most int, set func(*Options, int)) func(*Options, string) error {
	return func(o *Options, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n <= 0 || n > most {
			return errors.New("no such number")
		}
		set(o, n)
		return nil
	}
}

// readAddr only checks: the host that listens reads the address itself.
func readAddr(_ *Options, value string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return errors.New("no host and port")
	}
	return checkPort(port)
}

func checkPort(port string) error {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q is no number from 0 to 65535", port)
	}
	return nil
}

func checkPublicURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Fragment != "" || u.User != nil {
		return errors.New("a public URL is an absolute http or https URL without user and fragment")
	}
	return nil
}

func checkBasePath(path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("base path %q does not begin with a slash", path)
	}
	return nil
}

func checkOriginText(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.String() != u.Scheme+"://"+u.Host || strings.ToLower(origin) != origin {
		return fmt.Errorf("allowed origin %q is not of the form scheme://host or scheme://host:port, in lower case", origin)
	}
	if port := u.Port(); port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		return fmt.Errorf("allowed origin %q names the default port, which browsers leave out", origin)
	}
	return nil
}
