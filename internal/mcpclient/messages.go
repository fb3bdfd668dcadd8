package mcpclient

//lint:file-ignore SA1019 the SDK marks log messages as deprecated (SEP-2577); they are taken from the servers that send them

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wantMessages asks a legacy server for its log messages, which some send only then.
func (l *link) wantMessages() {
	ctx, cancel := context.WithTimeout(l.server.context, l.server.set.options.NotifyTimeout)
	defer cancel()
	if err := l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		l.server.log.Debug("an MCP server does not take a logging level", "error", err)
	}
}

// message passes a log message of the server to our log.
func (l *link) message(p *mcp.LoggingMessageParams) {
	if p == nil {
		return
	}
	level := slog.LevelInfo
	switch p.Level {
	case "debug":
		level = slog.LevelDebug
	case "warning":
		level = slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		level = slog.LevelError
	}
	text := cut(fmt.Sprint(p.Data), cmp.Or(l.server.set.options.Child.MaxLogLine, 4<<10))
	l.server.log.Log(context.Background(), level, "MCP server: "+text, "logger", cut(p.Logger, 100))
	if l.modern() {
		l.server.warn(featureLogging)
	}
}
