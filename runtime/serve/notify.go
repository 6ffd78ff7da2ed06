package serve

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
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
	if c.meta.progressToken == nil || !c.acceptsStream || !finite(done) || !finite(total) {
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
	root := &clientLog{c: c}
	return slog.New(clientHandler{root: root, Handler: slog.NewJSONHandler(&root.line, &slog.HandlerOptions{
		Level: slogLevels[slices.Index(logLevels, asked)],
		// Time and level are the notification's own business.
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		},
	})})
}

// clientLog sends what the standard library's JSON handler writes as notifications/message.
type clientLog struct {
	c    *running
	mu   sync.Mutex // from a line written to the line sent
	line bytes.Buffer
}

// clientHandler is the slog.Handler of a clientLog, with the attributes and groups of one
// logger.
type clientHandler struct {
	slog.Handler
	root *clientLog
}

func (h clientHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return clientHandler{h.Handler.WithAttrs(attrs), h.root}
}

func (h clientHandler) WithGroup(name string) slog.Handler {
	return clientHandler{h.Handler.WithGroup(name), h.root}
}

func (h clientHandler) Handle(ctx context.Context, r slog.Record) error {
	l := h.root
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line.Reset()
	if err := h.Handler.Handle(ctx, r); err != nil {
		return err
	}
	data, err := strictjson.AppendCompact(nil, l.line.Bytes())
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
	b = append(b, data...)
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if !l.c.ended && l.c.emit.allow(l.c.h.now()) {
		l.c.out.notify(append(b, "}}"...))
	}
	return nil
}
