package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// Notifications of one request: progress (F-46, F-47) and log messages (F-48), each only
// where the request asked for it, all of them before the response.

// A client is told of at most so many steps; more would drown it (F-47, F-51).
const (
	notificationsPerSecond = 20
	notificationBurst      = 200
)

// emitter is what a call has told its client. running.mu guards it.
type emitter struct {
	began bool
	last  float64 // progress reported
	limit *rate.Limiter
}

// allow takes a place under the rate limit.
func (e *emitter) allow(now time.Time) bool {
	if e.limit == nil {
		e.limit = rate.NewLimiter(notificationsPerSecond, notificationBurst)
	}
	return e.limit.AllowN(now, 1)
}

// Progress implements call.Call.
func (c *running) Progress(done, total float64, message string) {
	if c.say != nil {
		c.tellTask(done, total, message)
		return
	}
	if c.meta.progressToken == nil || !c.acceptsStream || !finite(done) || !finite(total) || c.run.Replaying() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &c.emit
	if c.ended || e.began && done <= e.last {
		return
	}
	if last := total > 0 && done >= total; !e.allow(c.h.now()) && !last { // the end is told in any case
		return
	}
	b := append([]byte(`{"jsonrpc":"2.0","method":"`), mcp.NotificationProgress...)
	b = append(b, `","params":{"progressToken":`...)
	b = append(b, escapeSeparators(c.meta.progressToken)...)
	b = append(b, `,"progress":`...)
	b = strictjson.AppendFloat(b, done)
	if total > 0 {
		b = append(b, `,"total":`...)
		b = strictjson.AppendFloat(b, total)
	}
	if message != "" {
		b = append(b, `,"message":`...)
		b = strictjson.AppendString(b, message)
	}
	if c.out.notify(append(b, "}}"...)) {
		e.began, e.last = true, done
	}
}

// tellTask makes progress a task's status message (T-43).
func (c *running) tellTask(done, total float64, message string) {
	if !finite(done) || !finite(total) || c.run.Replaying() {
		return
	}
	b := strictjson.AppendFloat(nil, done)
	if total > 0 {
		b = strictjson.AppendFloat(append(b, " of "...), total)
	}
	if message != "" {
		b = append(append(b, ": "...), message...)
	}
	c.say(string(b))
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// logLevels are the protocol's, from the lowest (spec 0.2).
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// slogLevels are the levels that log levels begin at.
var slogLevels = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelInfo + 2, slog.LevelWarn, slog.LevelError, slog.LevelError + 2, slog.LevelError + 4, slog.LevelError + 6}

func knownLogLevel(level string) bool { return slices.Contains(logLevels, level) }

// ClientLogger implements call.Call.
func (c *running) ClientLogger() *slog.Logger {
	if !c.clientLogging || c.meta.logLevel == nil || !c.acceptsStream {
		return slog.New(slog.DiscardHandler)
	}
	asked, _ := strictjson.String(c.meta.logLevel)
	return slog.New(clientHandler{c: c, from: slogLevels[slices.Index(logLevels, asked)]})
}

// clientHandler is a slog.Handler that sends notifications/message. Its data is an object:
// the message under "message", attributes under their keys, groups as objects; of two
// with one key the later counts.
type clientHandler struct {
	c      *running
	from   slog.Level
	groups []string
	before []func(data map[string]any) // what WithAttrs gave, in order
}

func (h clientHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.from && !h.c.run.Replaying()
}

func (h clientHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	groups := h.groups
	h.before = append(slices.Clip(h.before), func(data map[string]any) {
		for _, a := range attrs {
			addAttr(subObject(data, groups), a)
		}
	})
	return h
}

func (h clientHandler) WithGroup(name string) slog.Handler {
	if name != "" {
		h.groups = append(slices.Clip(h.groups), name)
	}
	return h
}

func (h clientHandler) Handle(_ context.Context, r slog.Record) error {
	data := map[string]any{}
	for _, add := range h.before {
		add(data)
	}
	r.Attrs(func(a slog.Attr) bool {
		addAttr(subObject(data, h.groups), a)
		return true
	})
	data["message"] = r.Message
	raw, err := strictjson.Marshal(data)
	if err != nil {
		return err
	}
	i := len(slogLevels) - 1
	for i > 0 && slogLevels[i] > r.Level {
		i--
	}
	b := append([]byte(`{"jsonrpc":"2.0","method":"`), mcp.NotificationMessage...)
	b = append(b, `","params":{"level":"`...)
	b = append(b, logLevels[i]...)
	b = append(b, `","logger":`...)
	b = strictjson.AppendString(b, h.c.name)
	b = append(b, `,"data":`...)
	b = append(b, raw...)
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if !h.c.ended && h.c.emit.allow(h.c.h.now()) {
		h.c.out.notify(append(b, "}}"...))
	}
	return nil
}

// subObject is the object at the end of groups, made where it is missing.
func subObject(data map[string]any, groups []string) map[string]any {
	for _, name := range groups {
		inner, ok := data[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			data[name] = inner
		}
		data = inner
	}
	return data
}

func addAttr(data map[string]any, a slog.Attr) {
	value := plainValue(a.Value)
	group, isGroup := value.([]slog.Attr)
	if !isGroup {
		if a.Key != "" {
			data[a.Key] = value
		}
		return
	}
	if a.Key != "" {
		data = subObject(data, []string{a.Key})
	}
	for _, member := range group {
		addAttr(data, member)
	}
}

// plainValue is what JSON can hold of a value, or a group's members. The author's own
// methods run here: what they panic with is not for the client, so slog's own resolving,
// which shows it, is not used.
func plainValue(v slog.Value) (plain any) {
	defer func() {
		if recover() != nil {
			plain = "(not shown)"
		}
	}()
	for range 10 {
		if v.Kind() != slog.KindLogValuer {
			break
		}
		v = v.LogValuer().LogValue()
	}
	switch v.Kind() {
	case slog.KindGroup:
		return v.Group()
	case slog.KindDuration, slog.KindTime:
		return v.String()
	}
	if err, ok := v.Any().(error); ok {
		return err.Error()
	}
	raw, err := strictjson.Marshal(v.Any())
	if err != nil {
		return "(not shown)"
	}
	return json.RawMessage(raw)
}
