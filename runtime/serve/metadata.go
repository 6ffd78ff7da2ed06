package serve

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/internal/declared"
)

// Protected resource metadata (RFC 9728): how a client that was refused finds out where to
// log in.

const wellKnown = "/.well-known/oauth-protected-resource"

// address is a URL that clients know the endpoint by, in RFC 9728 an identifier of the
// resource.
type address struct {
	text       string // exactly as configured, which is what clients compare with
	host, path string
	metadata   string // URL of its document
}

// newAddress makes an address of a public URL. Its document is where whatever leads to the
// endpoint leads too: a prefix that a gateway puts in front of /mcp stands in front of the
// well-known path as well. Where the path says of no prefix, it is at the root, as RFC 9728
// has it.
func newAddress(text string) (address, error) {
	path, err := auth.WellKnownPath(text)
	if err != nil {
		return address{}, fmt.Errorf("public URL: %w", err)
	}
	u, _ := url.Parse(text) // as WellKnownPath has
	prefix, ends := strings.CutSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), "/mcp")
	if !ends {
		prefix = ""
	}
	return address{text: text, host: u.Host, path: u.Path, metadata: u.Scheme + "://" + u.Host + prefix + path}, nil
}

// setIssuers checks and keeps what the metadata is made of.
func (h *Handler) setIssuers(o *Options) error {
	if len(o.AuthorizationServers) == 0 {
		if len(o.ScopesSupported) > 0 {
			return errors.New("ScopesSupported is for the metadata that names AuthorizationServers, and there are none")
		}
		return nil
	}
	h.issuers, h.scopesSupported = slices.Clone(o.AuthorizationServers), slices.Clone(o.ScopesSupported)
	errs := []error{each(h.issuers, checkIssuer), each(h.scopesSupported, checkScopeSupported)}
	urls := o.PublicURLs
	if len(urls) == 0 {
		urls = o.localURLs
	}
	if len(urls) == 0 {
		errs = append(errs, errors.New("PublicURLs (THAW_PUBLIC_URL) is empty, so clients cannot find out where to log in"))
	}
	for _, text := range urls {
		a, err := newAddress(text)
		errs = append(errs, err)
		h.addresses = append(h.addresses, a)
	}
	return errors.Join(errs...)
}

// addressOf is the address that a request came to, as far as Host and then path tell. What is
// not listed is never repeated: the first stands for it.
func (h *Handler) addressOf(host, path string) *address {
	best, most := &h.addresses[0], 0
	for i := range h.addresses {
		a, fits := &h.addresses[i], 0
		if strings.EqualFold(a.host, host) {
			fits += 2
		}
		if a.path == path {
			fits++
		}
		if fits > most {
			best, most = a, fits
		}
	}
	return best
}

const metadataVerbs = "GET, HEAD, OPTIONS"

// serveMetadata answers at the well-known paths, and reports whether path is one: alone, or
// followed by the path of the endpoint as clients or this server know it. The document is
// public: it is served to every page and every Host, and asks for no credential (B-57 of the
// case list).
func (h *Handler) serveMetadata(w http.ResponseWriter, r *http.Request, path string) bool {
	rest, ok := strings.CutPrefix(path, wellKnown)
	if !ok || len(h.issuers) == 0 {
		return false
	}
	if rest != "" && rest != "/mcp" && !slices.ContainsFunc(h.addresses, func(a address) bool { return a.path == rest }) {
		return false
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		header.Set("Allow", metadataVerbs)
		header.Set("Access-Control-Allow-Methods", metadataVerbs)
		header.Set("Access-Control-Allow-Headers", "*")
		header.Set("Access-Control-Max-Age", "7200")
		w.WriteHeader(http.StatusNoContent)
		return true
	default:
		header.Set("Allow", metadataVerbs)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return true
	}
	c := h.catalog.Load()
	body, err := auth.Metadata{
		Resource:             h.addressOf(r.Host, rest).text,
		AuthorizationServers: h.issuers,
		ScopesSupported:      h.basicScopes(c),
		ResourceName:         c.name,
	}.AppendJSON(nil)
	if err != nil {
		h.logger.Error("encode metadata", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	header["Content-Type"] = contentTypeJSON
	header.Set("Cache-Control", "public, max-age=300")
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
	return true
}

// checkHTTPS also takes http where it does not leave the machine.
func checkHTTPS(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it is no absolute https URL")
	case u.User != nil:
		return errors.New("it has a user")
	case u.Fragment != "":
		return errors.New("it has a fragment")
	case u.Scheme == "http" && !isLocal(u.Hostname()):
		return errors.New("it is http, which only this machine's own may be")
	}
	return nil
}

// checkIssuer holds RFC 8414, section 2.
func checkIssuer(text string) error {
	if err := checkHTTPS(text); err != nil {
		return fmt.Errorf("issuer: %w", err)
	}
	if strings.ContainsAny(text, "?#") {
		return errors.New("issuer: it has a query or a fragment")
	}
	return nil
}

// checkScopeSupported also holds A-06.
func checkScopeSupported(scope string) error {
	if scope == "offline_access" {
		return errors.New("offline_access is between client and issuer")
	}
	return declared.CheckScopes([]string{scope})
}
