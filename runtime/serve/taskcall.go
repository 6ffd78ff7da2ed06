package serve

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/statecodec"
)

// taskFormat is that of what a task's parts hold. A worker leaves a newer one to others.
const taskFormat = 1

// taskCall is what a worker needs of the request that became a task. It lies in the store,
// beside the head.
type taskCall struct {
	CallID       statecodec.CallID `json:"call"`
	Tool         string            `json:"tool"`
	Arguments    json.RawMessage   `json:"arguments"` // as sent
	Principal    taskPrincipal     `json:"principal"`
	ClientName   json.RawMessage   `json:"client,omitempty"`
	Capabilities json.RawMessage   `json:"capabilities"`
	Meta         json.RawMessage   `json:"meta"`
}

// taskPrincipal is a thaw.Principal with names that stay.
type taskPrincipal struct {
	Scheme  string         `json:"scheme"`
	Issuer  string         `json:"issuer,omitempty"`
	Subject string         `json:"subject,omitempty"`
	Tenant  string         `json:"tenant,omitempty"`
	Client  string         `json:"client,omitempty"`
	Scopes  []string       `json:"scopes,omitempty"`
	Claims  map[string]any `json:"claims,omitempty"`
}

func (c *running) taskCall() ([]byte, error) {
	p := c.principal
	return strictjson.Marshal(taskCall{
		CallID: c.sealedID(), Tool: c.name, Arguments: c.args,
		Principal:    taskPrincipal{p.Scheme, p.Issuer, p.Subject, p.Tenant, p.Client, p.Scopes, p.Claims},
		ClientName:   memberOf(c.meta.clientInfo, "name"),
		Capabilities: c.meta.capabilities, Meta: c.meta.raw,
	})
}

func readTaskCall(text []byte) (*taskCall, error) {
	var t taskCall
	if err := strictjson.Unmarshal(text, &t); err != nil {
		return nil, fmt.Errorf("the call of a task: %w", err)
	}
	if t.Tool == "" || strictjson.Kind(t.Arguments) != '{' || strictjson.Kind(t.Capabilities) != '{' {
		return nil, errors.New("the call of a task lacks its tool, arguments or capabilities")
	}
	return &t, nil
}

// meta is the request's _meta as far as it holds for a task: the trace goes on, while progress
// and log messages have no stream (T-43).
func (t *taskCall) meta() *meta {
	var m message
	m.takeMeta(t.Meta)
	m.meta.capabilities, m.meta.progressToken, m.meta.logLevel = t.Capabilities, nil, nil
	return &m.meta
}

func (p *taskPrincipal) principal() *thaw.Principal {
	return &thaw.Principal{Scheme: p.Scheme, Issuer: p.Issuer, Subject: p.Subject, Tenant: p.Tenant, Client: p.Client, Scopes: p.Scopes, Claims: p.Claims}
}

// taskOwner is who may see a task: the caller without the client, so that a client that
// registers anew finds its tasks. Anonymous is a caller of its own and equals no other.
func taskOwner(p *thaw.Principal) [32]byte {
	h := sha256.New()
	for _, part := range []string{"thaw/v1/task-owner", p.Scheme, p.Issuer, p.Subject, p.Tenant} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return [32]byte(h.Sum(nil))
}
