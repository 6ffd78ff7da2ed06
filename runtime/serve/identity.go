package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// Who calls, and what the caller may do. Each request is judged by itself; the client
// learns that it was refused and how to do better, the log learns why.

// anonymous is everybody where no scheme is asked.
var anonymous = &thaw.Principal{Scheme: schemeNone}

const schemeNone = "none"

// operator is whoever calls a tool by the program's own command and so could change the
// program as well: scopes do not bind it. It is known by its address, which no request that
// comes over HTTP can have.
var operator = &thaw.Principal{Scheme: "local", Subject: "operator"}

// retryUnavailable is how long a client waits for what judges credentials to come back.
const retryUnavailable = 5 * time.Second

// checkCredentials finds out who calls. The first scheme that knows the kind of
// credential decides.
func (q *request) checkCredentials() *failure {
	if q.principal != nil {
		return nil
	}
	if len(q.h.auth) == 0 {
		q.principal = anonymous
		return nil
	}
	for _, scheme := range q.h.auth {
		p, known, err := authenticate(scheme, q.r)
		if err == nil && known {
			err = checkPrincipal(&p)
		}
		if err != nil {
			return q.refuse(err)
		}
		if known {
			q.principal = &p
			return nil
		}
	}
	return q.h.unauthorized(q.r, auth.Challenge{Scopes: q.h.basicScopes(q.cat)}, "a credential is required")
}

// stillAuthorized judges the credential of a request that is still answered once more. Who cannot
// be judged at the moment stays who it was.
func (q *request) stillAuthorized() bool {
	for _, scheme := range q.h.auth {
		p, known, err := authenticate(scheme, q.r)
		if errors.Is(err, auth.ErrUnavailable) {
			return true
		}
		if err != nil {
			q.logRefusal(slog.LevelInfo, errRefused, err)
			return false
		}
		if known {
			return taskOwner(&p) == taskOwner(q.principal)
		}
	}
	return len(q.h.auth) == 0
}

// authenticate asks one scheme. One that panics has not judged, so nobody gets in by it and
// nobody is told to log in anew.
func authenticate(s auth.Scheme, r *http.Request) (p thaw.Principal, known bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			p, known, err = thaw.Principal{}, false, &schemePanic{fmt.Sprint(v), string(debug.Stack())}
		}
	}()
	return s.Authenticate(r)
}

// schemePanic is a scheme's panic as an error.
type schemePanic struct{ value, stack string }

func (e *schemePanic) Error() string        { return "panic: " + e.value }
func (e *schemePanic) Is(target error) bool { return target == auth.ErrUnavailable }

// checkPrincipal refuses what would be nobody, or an anonymous caller with a name: what is
// kept for a caller is found again by these members.
func checkPrincipal(p *thaw.Principal) error {
	switch {
	case p.Scheme == "":
		return errors.New("the caller has no Scheme")
	case p.Scheme == schemeNone:
		if p.Issuer != "" || p.Subject != "" || p.Tenant != "" || p.Client != "" || len(p.Scopes) > 0 || len(p.Claims) > 0 {
			return errors.New(`a caller of the scheme "none" has nothing else`)
		}
	case p.Subject == "":
		return errors.New("the caller has no Subject")
	}
	return nil
}

// refuse is the answer to a credential that err says is none.
func (q *request) refuse(err error) *failure {
	if errors.Is(err, auth.ErrUnavailable) {
		q.logRefusal(slog.LevelError, errUnjudged, err)
		f := internal(reasonAuthUnavailable, "Credentials cannot be judged at the moment: try again later")
		f.status, f.retryAfter = http.StatusServiceUnavailable, retryUnavailable
		return f
	}
	q.logRefusal(slog.LevelInfo, errRefused, err)
	return q.h.unauthorized(q.r, auth.Challenge{Error: "invalid_token", Scopes: q.h.basicScopes(q.cat)}, "the credential is not valid here")
}

// Kinds of refusals in the log.
var (
	errRefused  = errors.New("credential refused")
	errUnjudged = errors.New("credential not judged")
)

// logRefusal says why, so often as is bearable. What a scheme says of a credential must not
// repeat it, and is not trusted in that.
func (q *request) logRefusal(level slog.Level, kind, err error) {
	q.h.refusals.log(q.h.now(), kind, func(suppressed int) {
		attrs := []slog.Attr{slog.String("why", redacted(err.Error(), q.r))}
		if suppressed > 0 {
			attrs = append(attrs, slog.Int("suppressed", suppressed))
		}
		var panicked *schemePanic
		if errors.As(err, &panicked) {
			attrs = append(attrs, slog.String("stack", panicked.stack))
		}
		q.h.logger.LogAttrs(q.r.Context(), level, kind.Error(), attrs...)
	})
}

const (
	maxRefusalText = 300 // of what a stranger sent
	minCredential  = 8   // what is shorter is a word such as Bearer
)

// redacted is text without what the request has in Authorization.
func redacted(text string, r *http.Request) string {
	for _, line := range r.Header["Authorization"] {
		for part := range strings.FieldsSeq(line) {
			if len(part) >= minCredential {
				text = strings.ReplaceAll(text, part, "(credential)")
			}
		}
	}
	if len(text) > maxRefusalText {
		text = strings.ToValidUTF8(text[:maxRefusalText], "") + "…"
	}
	return text
}

// challenge is the value of WWW-Authenticate.
func (h *Handler) challenge(r *http.Request, c auth.Challenge) string {
	if len(h.issuers) > 0 {
		c.ResourceMetadata = h.addressOf(r.Host, r.URL.Path).metadata
	}
	return c.String()
}

func (h *Handler) unauthorized(r *http.Request, c auth.Challenge, message string) *failure {
	return &failure{status: http.StatusUnauthorized, code: mcp.CodeInvalidRequest, reason: reasonUnauthorized,
		message: "Unauthorized: " + message, challenge: h.challenge(r, c)}
}

// checkScopes judges what the operation needs, as declared; what depends on the arguments
// the handler judges (RequireScopes).
func (q *request) checkScopes() *failure {
	if q.target == nil {
		return nil
	}
	scopes := q.target.needs()
	return q.h.requireScopes(q.r, q.principal, scopes, scopes)
}

// requireScopes is nil if the caller has all of scopes. all are those of the operation,
// which one challenge names.
func (h *Handler) requireScopes(r *http.Request, caller *thaw.Principal, scopes, all []string) *failure {
	if h.hasScopes(caller, scopes) {
		return nil
	}
	what := "this needs the scope " + strings.Join(all, " ")
	if caller.Scheme == schemeNone && len(h.auth) > 0 { // who has not logged in can still do so
		return h.unauthorized(r, auth.Challenge{Scopes: all}, what)
	}
	f := forbidden(reasonInsufficientScope, what)
	f.challenge = h.challenge(r, auth.Challenge{Error: "insufficient_scope", Scopes: all})
	f.data = []byte(`"scopes":[`) // some gateways rename the header
	for i, scope := range all {
		if i > 0 {
			f.data = append(f.data, ',')
		}
		f.data = strictjson.AppendString(f.data, scope)
	}
	f.data = append(f.data, ']')
	return f
}

// hasScopes minds that a broad scope may imply a narrow one.
func (h *Handler) hasScopes(caller *thaw.Principal, scopes []string) bool {
	return caller == operator || len(auth.HasAll(caller.Scopes, scopes, h.implies)) == 0
}

// RequireScopes implements call.Call.
func (c *running) RequireScopes(scopes []string) error {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if ended {
		return call.ErrNoCall
	}
	if c.taskID != "" && !c.h.hasScopes(c.principal, scopes) { // too late for a challenge
		return thaw.Errorf("Forbidden: this needs the scope %s", strings.Join(scopes, " "))
	}
	all := slices.Clone(c.scopes)
	for _, scope := range scopes {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	if f := c.h.requireScopes(c.out.r, c.principal, scopes, all); f != nil {
		return f
	}
	return nil
}

// copied is a principal as a handler may have it: what it changes is its own.
func copied(p *thaw.Principal) thaw.Principal {
	own := *p
	own.Scopes, own.Claims = slices.Clone(p.Scopes), maps.Clone(p.Claims)
	return own
}
