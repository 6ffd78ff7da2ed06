package thaw

import (
	"encoding/json"
	"errors"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// failure is what is kept of a step's error: its text, and everything that decides what
// the client gets for it.
type failure struct {
	Text     string          `json:"text"`
	Client   *string         `json:"client,omitempty"` // of an Errorf
	Protocol *protocolError  `json:"protocol,omitempty"`
	Needs    json.RawMessage `json:"needs,omitempty"` // of an UnsupportedError
	Lack     bool            `json:"lack,omitempty"`  // ErrUnsupported without needs
	Missing  bool            `json:"missing,omitempty"`
}

type protocolError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// maxFailureText bounds an error's text: a journal has little room.
const maxFailureText = 2048

func encodeFailure(err error) ([]byte, error) {
	f := failure{Text: cut(err.Error())}
	var own *toolError
	if errors.As(err, &own) {
		text := own.text
		f.Client = &text
	}
	var protocol *mcp.Error
	if errors.As(err, &protocol) && protocol != nil {
		f.Protocol = &protocolError{Code: protocol.Code, Message: protocol.Message}
		if protocol.Data != nil {
			data, err := strictjson.Marshal(protocol.Data)
			if err != nil {
				return nil, err
			}
			f.Protocol.Data = data
		}
	}
	var lacks *UnsupportedError
	if errors.As(err, &lacks) && lacks != nil && len(lacks.Needs.Raw) > 0 {
		f.Needs = lacks.Needs.Raw
	} else {
		f.Lack = errors.Is(err, ErrUnsupported)
	}
	f.Missing = errors.Is(err, ErrNotFound)
	return strictjson.Marshal(f)
}

func cut(text string) string {
	if len(text) <= maxFailureText {
		return text
	}
	return text[:maxFailureText] + "…"
}

// stepError is a step's error as it was kept.
type stepError struct {
	text   string
	causes []error
}

func (e *stepError) Error() string   { return e.text }
func (e *stepError) Unwrap() []error { return e.causes }

func decodeFailure(kept []byte) error {
	var f failure
	if err := strictjson.Unmarshal(kept, &f); err != nil {
		return err
	}
	e := &stepError{text: f.Text}
	if f.Protocol != nil {
		protocol := &mcp.Error{Code: f.Protocol.Code, Message: f.Protocol.Message}
		if f.Protocol.Data != nil {
			protocol.Data = f.Protocol.Data
		}
		e.causes = append(e.causes, protocol)
	}
	if f.Needs != nil {
		e.causes = append(e.causes, &UnsupportedError{Needs: mcp.ClientCapabilities{Raw: f.Needs}})
	}
	if f.Lack {
		e.causes = append(e.causes, ErrUnsupported)
	}
	if f.Missing {
		e.causes = append(e.causes, ErrNotFound)
	}
	if f.Client != nil {
		e.causes = append(e.causes, &toolError{text: *f.Client})
	}
	return e
}
