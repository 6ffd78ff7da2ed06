package task

import (
	"context"
	"encoding/json"
	"errors"
)

// DispatchScheme is a kind of Dispatcher that a setting can name, as NAME or NAME:REST.
type DispatchScheme struct {
	// Name is what stands before the colon.
	Name string
	// Usage is one line for messages: how the setting is written, and where messages go.
	Usage string
	// Open makes the Dispatcher of what stands behind the colon. It does no I/O: a queue that
	// is not there is the error of the first message.
	Open func(ctx context.Context, rest string) (Dispatcher, error)
}

// Message is what a Dispatcher sends when it leaves the process, and what a host reads: the
// task that it names, and nothing else.
type Message struct {
	ID string // of the task
}

// messageType marks a message, so that nothing else a worker is sent is taken for one.
const messageType = "thaw.task"

// maxMessageID bounds the id in a message, in bytes. Tasks have ids of 36.
const maxMessageID = 256

type messageJSON struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Text is the message as it is sent: {"type":"thaw.task","id":"…"}.
func (m Message) Text() string {
	b, _ := json.Marshal(messageJSON{messageType, m.ID}) // strings always marshal
	return string(b)
}

// ErrNoMessage says that a text is not a Message.
var ErrNoMessage = errors.New("task: not the message of a task")

// ParseMessage reads what Text wrote; members that it does not know are for later versions.
// The error is ErrNoMessage, which repeats nothing of the text.
func ParseMessage(text string) (Message, error) {
	var m messageJSON
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Type != messageType || m.ID == "" || len(m.ID) > maxMessageID {
		return Message{}, ErrNoMessage
	}
	return Message{m.ID}, nil
}
