package serve

import (
	"context"
	"fmt"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// reading is what resources/read is about.
type reading struct {
	*resource
	uri    string
	values map[string]string // of a template's variables
}

func lookupResource(q *request) *failure {
	uri, _ := strictjson.String(q.msg.params.uri)
	r, values := q.cat.find(uri)
	if r == nil {
		return notFound(uri)
	}
	q.target = &reading{r, uri, values}
	return nil
}

// serveRead answers resources/read.
func serveRead(q *request) {
	r := q.target.(*reading)
	uri := r.uri
	q.handle("resource", uri, 0, func(ctx context.Context, c *running) ([]byte, error) {
		var contents []mcp.ResourceContents
		var err error
		var mimeType string
		if r.fixed != nil {
			mimeType = r.fixed.Definition.MIMEType
			contents, err = r.fixed.Read(ctx)
		} else {
			mimeType = r.template.Definition.MIMEType
			contents, err = r.template.Read(ctx, r.values)
		}
		if err != nil {
			return nil, err
		}
		if len(contents) == 0 {
			return nil, thaw.ErrNotFound // never a result without contents (F-33)
		}
		b := append(c.beginResult(0), `"contents":[`...)
		for i, part := range contents {
			if part.URI == "" {
				part.URI = uri
			}
			if part.MIMEType == "" {
				part.MIMEType = mimeType
			}
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = part.AppendJSON(b); err != nil {
				return nil, fmt.Errorf("encode contents %d: %w", i, err)
			}
		}
		b = append(b, ']')
		if q.msg.params.inputResponses != nil || q.msg.params.requestState != nil {
			b = append(b, hints(0, false)...) // of a retry nothing may be cached (C-07)
		} else {
			b = append(b, r.hints...)
		}
		return c.endResult(b, nil)
	})
}

// find looks among the fixed resources first, then among the templates in order.
func (c *catalog) find(uri string) (*resource, map[string]string) {
	if r := c.resources[uri]; r != nil {
		return r, nil
	}
	for _, t := range c.templates {
		if values, ok := t.template.Match(uri); ok {
			return t, values
		}
	}
	return nil, nil
}
