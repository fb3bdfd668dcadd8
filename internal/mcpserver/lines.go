package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// lines are the two streams of a stdio client, a message a line. The SDK's own transport ends the connection at the first
// line that is no message.
type lines struct {
	out *jsonrpc.Writer // one that blocks is left behind by close
	log *slog.Logger
	max int
}

func newLines(out io.Writer, log *slog.Logger, max int) *lines {
	return &lines{out: jsonrpc.NewWriter(out, nil), log: log, max: max}
}

// write writes one message.
func (l *lines) write(message []byte) error { return l.out.Write(context.Background(), message) }

// errClosed is why nothing is written after close.
var errClosed = fmt.Errorf("the connection was closed: %w", io.ErrClosedPipe)

// close refuses what is written from now on, and waits for nothing.
func (l *lines) close() { l.out.End(errClosed) }

// failure is the write that failed, nil if none did.
func (l *lines) failure() error {
	if err := l.out.Err(); err != errClosed {
		return err
	}
	return nil
}

// read hands each message on, until in ends.
func (l *lines) read(in io.Reader, to router) error {
	lines := jsonrpc.NewReader(in, l.max)
	for {
		line, err := lines.Append(nil)
		long, refused := errors.AsType[*jsonrpc.TooLongError](err)
		switch {
		case refused:
			l.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than the limit of %d bytes", long.Limit))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) > 0:
			l.accept(line, to)
		}
	}
}

// accept hands a line on if it is a message, and answers it if it is not.
func (l *lines) accept(line []byte, to router) {
	if !json.Valid(line) {
		l.refuse(mcpjsonrpc.CodeParseError, "the line is not JSON")
		return
	}
	m, err := mcpjsonrpc.DecodeMessage(line)
	if err != nil {
		l.refuse(jsonrpc.CodeInvalidRequest, "the line is not one JSON-RPC 2.0 message")
		return
	}
	if request, ok := m.(*mcpjsonrpc.Request); ok && request.IsCall() && !kept(request.ID, line) {
		l.refuse(jsonrpc.CodeInvalidRequest, "the id is not kept exactly: give a string, or an integer of at most 2^53-1")
		return
	}
	to.deliver(m)
}

// kept reports whether an id is the one in its line: the SDK makes integers of all numbers, by way of floating point.
func kept(id mcpjsonrpc.ID, line []byte) bool {
	if _, ok := id.Raw().(string); ok {
		return true
	}
	var written struct {
		ID json.RawMessage `json:"id"`
	}
	return json.Unmarshal(line, &written) == nil && string(written.ID) == keyOf(id)
}

// refuse answers what is no message.
func (l *lines) refuse(code int, why string) {
	l.log.Warn("a line from the client is refused", "reason", why)
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		err = l.write(message)
	}
	if err != nil {
		l.log.Debug("the refusal was not sent", "error", err)
	}
}

// tooMany refuses a request because of those that are not answered yet.
func (l *lines) tooMany(id mcpjsonrpc.ID, limit int) {
	message, err := mcpjsonrpc.EncodeMessage(&mcpjsonrpc.Response{ID: id, Error: &mcpjsonrpc.Error{
		Code: mcpjsonrpc.CodeInternalError, Message: fmt.Sprintf("%d requests are not answered yet, which is the limit: wait for some", limit),
	}})
	if err == nil {
		err = l.write(message)
	}
	if err != nil {
		l.log.Debug("the refusal was not sent", "error", err)
	}
}
