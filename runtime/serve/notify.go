package serve

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"

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

type emitter struct {
	c     *running
	mu    sync.Mutex
	last  float64 // progress reported
	began bool
	limit *rate.Limiter
	ended bool
}

func (e *emitter) init(c *running) { e.c = c }

// end silences the emitter: nothing follows the response.
func (e *emitter) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
}

// allow takes a place under the rate limit. e.mu is held.
func (e *emitter) allow() bool {
	if e.limit == nil {
		e.limit = rate.NewLimiter(notificationsPerSecond, notificationBurst)
	}
	return e.limit.AllowN(e.c.q.h.now(), 1)
}

// Progress implements call.Call.
func (c *running) Progress(done, total float64, message string) {
	e, token := &c.emit, c.q.msg.meta.progressToken
	if token == nil || !c.q.acceptsStream || !finite(done) || !finite(total) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.began && done <= e.last {
		return
	}
	if last := total > 0 && done >= total; !e.allow() && !last { // the end is told in any case
		return
	}
	b := append([]byte(`{"jsonrpc":"2.0","method":"`), mcp.NotificationProgress...)
	b = append(b, `","params":{"progressToken":`...)
	b = append(b, escapeSeparators(token)...)
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
	if c.q.out.notify(append(b, "}}"...)) {
		e.began, e.last = true, done
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// logLevels are the protocol's, from the lowest (spec 0.2).
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// slogLevels are the levels that log levels begin at.
var slogLevels = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelInfo + 2, slog.LevelWarn, slog.LevelError, slog.LevelError + 2, slog.LevelError + 4, slog.LevelError + 6}

func knownLogLevel(level string) bool { return slices.Contains(logLevels, level) }

// ClientLogger implements call.Call.
func (c *running) ClientLogger() *slog.Logger {
	if !c.q.cat.clientLogging || c.q.msg.meta.logLevel == nil || !c.q.acceptsStream {
		return slog.New(slog.DiscardHandler)
	}
	level, _ := stringOf(c.q.msg.meta.logLevel)
	return slog.New(&clientLog{c: c, from: slogLevels[slices.Index(logLevels, level)]})
}

// clientLog is a slog.Handler that writes notifications/message.
type clientLog struct {
	c     *running
	from  slog.Level
	group string
	attrs []slog.Attr
}

func (l *clientLog) Enabled(_ context.Context, level slog.Level) bool { return level >= l.from }

func (l *clientLog) Handle(_ context.Context, r slog.Record) error {
	data := map[string]any{"message": r.Message}
	for _, a := range l.attrs {
		data[a.Key] = a.Value.Resolve().Any()
	}
	r.Attrs(func(a slog.Attr) bool {
		data[l.group+a.Key] = a.Value.Resolve().Any()
		return true
	})
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
	b = strictjson.AppendString(b, l.c.name)
	b = append(b, `,"data":`...)
	b = append(b, raw...)
	e := &l.c.emit
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended && e.allow() {
		l.c.q.out.notify(append(b, "}}"...))
	}
	return nil
}

func (l *clientLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *l
	next.attrs = slices.Clone(l.attrs)
	for _, a := range attrs {
		next.attrs = append(next.attrs, slog.Attr{Key: l.group + a.Key, Value: a.Value})
	}
	return &next
}

func (l *clientLog) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	next := *l
	next.group += name + "."
	return &next
}
