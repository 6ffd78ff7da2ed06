package serve

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// What one stream may name (S-12): it is kept as long as the stream.
const (
	maxSubscriptions     = 1000
	maxSubscriptionBytes = 128 << 10
)

// servesListen: only where a change of this process reaches a stream of this process, or of
// tasks, which lie in a store, any stream (L-15).
func servesListen(c *catalog) bool {
	s := &c.capabilities
	return c.streams && c.servesTasks() || s.Tools != nil && s.Tools.ListChanged || s.Prompts != nil && s.Prompts.ListChanged || s.Resources != nil && s.Resources.ListChanged
}

func checkListenParams(q *request) *failure {
	filter := q.msg.params.filter
	if strictjson.Kind(filter) != '{' {
		return invalidParams(reasonInvalidParams, "Invalid params: notifications must be an object")
	}
	for name, value := range strictjson.Members(filter) {
		switch string(name) {
		case "toolsListChanged", "promptsListChanged", "resourcesListChanged":
			if k := strictjson.Kind(value); k != 't' && k != 'f' {
				return invalidParams(reasonInvalidParams, "Invalid params: notifications."+string(name)+" must be a boolean")
			}
		case "taskIds":
			if f := checkTaskFilter(q, value); f != nil {
				return f
			}
		case "resourceSubscriptions":
			if strictjson.Kind(value) != '[' {
				return invalidParams(reasonInvalidParams, "Invalid params: notifications.resourceSubscriptions must be an array of URIs")
			}
			n := 0
			for uri := range strictjson.Elements(value) {
				if n++; strictjson.Kind(uri) != '"' || n > maxSubscriptions || len(value) > maxSubscriptionBytes {
					return invalidParams(reasonInvalidParams, "Invalid params: notifications.resourceSubscriptions must be an array of at most "+
						strconv.Itoa(maxSubscriptions)+" URIs in at most "+strconv.Itoa(maxSubscriptionBytes)+" bytes")
				}
			}
		}
	}
	if !q.acceptsStream || !q.out.canStream {
		return &failure{status: http.StatusNotAcceptable, code: mcp.CodeInvalidRequest, reason: reasonNotAcceptable,
			message: "Not acceptable: subscriptions/listen answers text/event-stream"}
	}
	return nil
}

// recheckEvery is how often the credential of a stream is judged again (L-18): a token that has
// expired or a key that was taken away brings nothing for longer.
const recheckEvery = time.Minute

// serveListen acknowledges what it will honour (L-03, L-04) and then sends changes until
// the client leaves (L-11) or the server drains (L-12).
func serveListen(q *request) {
	h, principal := q.h, q.principal
	l := &listener{lists: map[string]bool{}, wake: make(chan struct{}, 1),
		may: func(scopes []string) bool { return h.hasScopes(principal, scopes) }}
	filter := q.msg.params.filter
	agreed := l.agree(&q.cat.capabilities, filter)
	if !q.h.hub.add(l, q.h.limits.streams) {
		f := internal(reasonTooManyStreams, "Too many streams: try again later")
		f.status, f.retryAfter = http.StatusServiceUnavailable, 5*time.Second
		q.fail(f)
		return
	}
	defer q.h.hub.remove(l)
	defer q.out.stop()
	tasks, err := q.watchTasks()
	if err != nil {
		q.storeFailed(err)
		return
	}
	defer tasks.stop()
	if q.cat.servesTasks() && strictjson.Member(filter, "taskIds") != nil {
		agreed = appendAgreed(agreed, "taskIds", tasks.agreed())
	}
	if life, limited := q.streamLife(); limited {
		defer time.AfterFunc(life, l.close).Stop()
	}
	recheck := time.NewTicker(recheckEvery)
	defer recheck.Stop()
	// The stream outlives the need for the body by hours.
	q.body, q.msg = nil, message{id: bytes.Clone(q.msg.id)}

	meta := append([]byte(`"_meta":{"`+mcp.MetaSubscriptionID+`":`), q.msg.id...)
	ack := append([]byte(`{"notifications":`), agreed...)
	if !q.notify(mcp.NotificationAcknowledged, append(ack, "},"...), meta) || !tasks.tell(q, meta) {
		return
	}
	for {
		select {
		case <-q.r.Context().Done():
			return
		case <-tasks.due():
			if !tasks.look(q, meta) {
				return
			}
			continue
		case <-recheck.C:
			if !q.stillAuthorized() {
				l.close()
			}
			continue
		case <-l.wake:
		}
		changed, updated, closed := l.take()
		for _, notification := range changed {
			if !q.notify(notification, []byte("{"), meta) {
				return
			}
		}
		for _, uri := range updated {
			params := strictjson.AppendString([]byte(`{"uri":`), uri)
			if !q.notify(mcp.NotificationResourceUpdated, append(params, ','), meta) {
				return
			}
		}
		if closed {
			result := append([]byte(complete), meta...)
			if q.cat.serverInfo != nil {
				result = append(append(result, ','), q.cat.serverInfo...)
			}
			q.out.result(q.msg.id, result, []byte("}}"))
			return
		}
	}
}

// notify sends one notification whose params begin with params and end with meta.
func (q *request) notify(method string, params, meta []byte) bool {
	b := append([]byte(`{"jsonrpc":"2.0","method":"`), method...)
	b = append(b, `","params":`...)
	b = append(b, params...)
	b = append(b, meta...)
	return q.out.notify(append(b, "}}}"...))
}

// agree takes from the filter what the server advertises (L-09) and returns it, an object
// without its end.
func (l *listener) agree(c *mcp.ServerCapabilities, filter []byte) []byte {
	agreed := []byte("{")
	add := func(name string, value []byte) { agreed = appendAgreed(agreed, name, value) }
	list := func(name, notification string, can bool) {
		if can && strictjson.Kind(strictjson.Member(filter, name)) == 't' {
			l.lists[notification] = true
			add(name, []byte("true"))
		}
	}
	list("toolsListChanged", mcp.NotificationToolsChanged, c.Tools != nil && c.Tools.ListChanged)
	list("promptsListChanged", mcp.NotificationPromptsChanged, c.Prompts != nil && c.Prompts.ListChanged)
	list("resourcesListChanged", mcp.NotificationResourcesChanged, c.Resources != nil && c.Resources.ListChanged)
	if uris := strictjson.Member(filter, "resourceSubscriptions"); uris != nil && c.Resources != nil && c.Resources.Subscribe {
		for raw := range strictjson.Elements(uris) {
			uri, _ := strictjson.String(raw)
			l.uris = append(l.uris, uri)
		}
		add("resourceSubscriptions", uris)
	}
	return agreed
}

// appendAgreed appends a member to an object without its end.
func appendAgreed(agreed []byte, name string, value []byte) []byte {
	if len(agreed) > 1 {
		agreed = append(agreed, ',')
	}
	agreed = append(agreed, `"`+name+`":`...)
	// Compact: the client's own line ends would break the stream's framing (H-19).
	agreed, _ = strictjson.AppendCompact(agreed, value)
	return agreed
}
