package serve

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// The four lists.
const (
	listTools = iota
	listPrompts
	listResources
	listTemplates
)

var listKinds = [4]struct{ member, changed string }{
	listTools:     {"tools", mcp.NotificationToolsChanged},
	listPrompts:   {"prompts", mcp.NotificationPromptsChanged},
	listResources: {"resources", mcp.NotificationResourcesChanged},
	listTemplates: {"resourceTemplates", mcp.NotificationResourcesChanged},
}

// list is one list, encoded item by item on first use. Its order is the author's (F-03).
type list struct {
	member   string
	end      []byte // hints, _meta and the closing brace
	maxItems int
	maxBytes int
	items    func() ([]item, error)
	first    func() ([]byte, error) // the page without a cursor
}

type item struct {
	name string // unique in its list: what a cursor names
	json []byte
}

func (h *Handler) addLists(c *catalog, s *thaw.Server) {
	end := append(listHints(s), c.metaEnd...)
	add := func(kind, n int, at func(i int) (string, any)) {
		l := &list{member: listKinds[kind].member, end: end, maxItems: h.limits.pageItems, maxBytes: h.limits.pageBytes}
		l.items = sync.OnceValues(func() ([]item, error) {
			items := make([]item, 0, n)
			for i := range n {
				name, definition := at(i)
				b, err := strictjson.Marshal(definition)
				if err != nil {
					return nil, fmt.Errorf("%s: encode %q: %w", listKinds[kind].member, name, err)
				}
				items = append(items, item{name, b})
			}
			return items, nil
		})
		l.first = sync.OnceValues(func() ([]byte, error) { return l.page(0) })
		c.lists[kind] = l
	}
	add(listTools, len(s.Tools), func(i int) (string, any) { d := s.Tools[i].Definition(); return d.Name, d })
	add(listPrompts, len(s.Prompts), func(i int) (string, any) { d := s.Prompts[i].Definition(); return d.Name, d })
	add(listResources, len(s.Resources), func(i int) (string, any) { d := s.Resources[i].Definition(); return d.URI, d })
	add(listTemplates, len(s.ResourceTemplates), func(i int) (string, any) {
		d := s.ResourceTemplates[i].Definition()
		return d.URITemplate, d
	})
}

// page encodes the page that starts at item i. It has at least one item if there is one.
func (l *list) page(i int) ([]byte, error) {
	items, err := l.items()
	if err != nil {
		return nil, err
	}
	b := append([]byte(complete+`"`), l.member...)
	b = append(b, `":[`...)
	start := i
	for ; i < len(items); i++ {
		if i-start == l.maxItems || i > start && len(b)+len(items[i].json) > l.maxBytes {
			break
		}
		if i > start {
			b = append(b, ',')
		}
		b = append(b, items[i].json...)
	}
	b = append(b, ']')
	if i < len(items) {
		b = append(b, `,"nextCursor":"`...)
		b = append(b, cursorAfter(l.member, items[i-1].name)...)
		b = append(b, '"')
	}
	return append(b, l.end...), nil
}

// A cursor names the list and the last item given, so any instance can go on, and a
// catalogue that grew meanwhile neither skips nor repeats what was there (F-45).

func cursorAfter(member, name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(member + "\x00" + name))
}

// after returns the index of the item that follows the one a cursor names.
func (l *list) after(cursor string) (int, bool) {
	if strings.ContainsAny(cursor, "\r\n") { // which the decoder passes over
		return 0, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return 0, false
	}
	name, ok := strings.CutPrefix(string(b), l.member+"\x00")
	if !ok {
		return 0, false
	}
	items, err := l.items()
	if err != nil {
		return 0, false
	}
	i := slices.IndexFunc(items, func(it item) bool { return it.name == name })
	return i + 1, i >= 0
}

// same reports whether two lists give the same items.
func (l *list) same(other *list) bool {
	a, errA := l.items()
	b, errB := other.items()
	return errA == nil && errB == nil && slices.EqualFunc(a, b, func(x, y item) bool { return string(x.json) == string(y.json) })
}

// serveList answers one of the four list methods.
func serveList(kind int) func(*request) {
	return func(q *request) {
		l := q.cat.lists[kind]
		var page []byte
		var err error
		if q.msg.params.cursor == nil {
			page, err = l.first()
		} else {
			cursor, _ := strictjson.String(q.msg.params.cursor)
			i, ok := l.after(cursor)
			if !ok {
				q.fail(invalidParams(reasonInvalidCursor, "Invalid params: cursor is none that this list gave"))
				return
			}
			page, err = l.page(i)
		}
		if err != nil {
			q.failInternal("encode "+l.member, err)
			return
		}
		q.out.result(q.msg.id, page)
	}
}

// listHints are the cache hints of the lists and of server/discover (C-01).
func listHints(s *thaw.Server) []byte {
	ttl := s.ListTTL
	if ttl == 0 {
		ttl = 5 * time.Minute
	}
	return hints(ttl, s.PublicLists)
}

func hints(ttl time.Duration, public bool) []byte {
	b := strconv.AppendInt([]byte(`,"ttlMs":`), max(ttl.Milliseconds(), 0), 10)
	if public {
		return append(b, `,"cacheScope":"public"`...)
	}
	return append(b, `,"cacheScope":"private"`...)
}
