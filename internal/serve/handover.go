package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// A server that is updated ends its connections once no turn is left. The editor need not know: the
// link connects again, and initializes and resumes what the editor has initialized and opened.

const (
	// After maxUnsteady connections in a row that have each ended within steady, a link gives up
	// with the next attempt that fails.
	steady, maxUnsteady = 10 * time.Second, 5
	// maxWaiting limits the lines of the editor that wait for a server, as during a hand-over.
	maxWaiting = 100
)

// canHandOver reports whether another connection can take the place of one that has ended.
func (l *Link) canHandOver(ctx context.Context, reason error) bool {
	ended := errors.Is(reason, errClosed) || errors.Is(reason, websocket.ErrLost)
	return ended && ctx.Err() == nil && l.leaving.Err() == nil && l.said.isInitialized()
}

// handOver returns a connection in the place of one that has ended for a reason, and sends the
// requests that the earlier server has not begun to serve. Its error says why that was not possible;
// then all requests of the editor are open.
func (l *Link) handOver(
	ctx context.Context, ended websocket.Conn, reason error,
) (websocket.Conn, error) {
	lines := l.said.takeUnserved(ended.Unread())
	_ = ended.Close()
	l.answerOpen("%v; acp-agent connects again: send the message again", reason)
	server, err := l.another(ctx, reason)
	if err != nil {
		for range len(l.lines) {
			lines = append(lines, <-l.lines)
		}
	} else {
		l.mu.Lock()
		l.server = server
		l.mu.Unlock()
	}
	for _, line := range lines {
		if line = l.said.fromEditor(line); line != nil && err == nil {
			_ = server.Write(ctx, line) // if it fails, this connection has ended too
		}
	}
	return server, err
}

// another returns a connection in the place of one that has ended for a reason. Its error names the
// reason too.
func (l *Link) another(ctx context.Context, reason error) (websocket.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.patience, reason)
	defer cancel()
	defer context.AfterFunc(l.leaving, cancel)()
	inRow := l.inRow + 1
	if time.Since(l.handedOver) > steady {
		inRow = 1
	}
	why := reason
	for range pause.Attempts(ctx) {
		server, err := l.dial(ctx)
		if err == nil {
			if err = l.introduce(ctx, server); err == nil {
				l.handedOver, l.inRow = time.Now(), inRow
				return server, nil
			}
			_ = server.Close()
		}
		if errors.Is(err, io.EOF) {
			err = errClosed
			inRow++
		}
		if ctx.Err() == nil {
			why = err // an interrupted attempt says less
		}
		if inRow > maxUnsteady || isFinal(err) {
			break
		}
	}
	if l.leaving.Err() != nil {
		return nil, errClosed // there is no need for another one
	}
	return nil, fmt.Errorf("%w, and connecting again failed: %w", reason, why)
}

// isFinal reports whether a server that answered with err will answer so again.
func isFinal(err error) bool {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return !isShuttingDown(strictjson.Encode(refused))
	}
	return websocket.IsRefused(err)
}

// introduce initializes a connection and resumes the open sessions. A session that cannot be
// resumed is left out: the server tells the editor so when it uses the session.
func (l *Link) introduce(ctx context.Context, server websocket.Conn) error {
	initialize, sessions := l.said.again()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := l.ask(ctx, server, protocol.Initialize, initialize); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(sessions)) {
		params, err := l.resuming(ctx, server, id, sessions[id])
		if err == nil {
			_, err = l.ask(ctx, server, protocol.SessionResume, params)
		}
		if _, refused := errors.AsType[*jsonrpc.Error](err); err != nil && !refused {
			return err
		}
	}
	return nil
}

// resuming returns the params that resume a session that was opened with others. The session may
// have got other roots since.
func (l *Link) resuming(
	ctx context.Context, server websocket.Conn, id string, params json.RawMessage,
) (json.RawMessage, error) {
	params = strictjson.Set(params, protocol.SessionID, strictjson.Encode(id))
	list := strictjson.Encode(map[string]json.RawMessage{"cwd": strictjson.Find(params, "cwd")})
	for {
		result, err := l.ask(ctx, server, protocol.SessionList, list)
		if err != nil {
			return nil, err
		}
		var page struct {
			Sessions   []json.RawMessage
			NextCursor string
		}
		if err := json.Unmarshal(result, &page); err != nil {
			return nil, err
		}
		for _, session := range page.Sessions {
			if strictjson.FindText(session, protocol.SessionID) == id {
				return strictjson.Set(params, protocol.AdditionalDirectories,
					strictjson.Find(session, protocol.AdditionalDirectories)), nil
			}
		}
		if page.NextCursor == "" {
			return params, nil
		}
		list = strictjson.Set(list, "cursor", strictjson.Encode(page.NextCursor))
	}
}

// ask sends a request of the link itself and returns the result. What the server sends besides the
// answer is for the editor.
func (l *Link) ask(
	ctx context.Context, server websocket.Conn, method string, params json.RawMessage,
) (json.RawMessage, error) {
	id := strictjson.Encode("acp-agent connect")
	err := server.Write(ctx, strictjson.Encode(map[string]any{
		"jsonrpc": "2.0", "id": id, "method": method, "params": params,
	}))
	if err != nil {
		return nil, err
	}
	for {
		message, err := server.Read()
		if err != nil {
			return nil, err
		}
		if strictjson.Find(message, "method") == nil &&
			bytes.Equal(strictjson.Find(message, "id"), id) {
			var answer struct {
				Result json.RawMessage
				Error  *jsonrpc.Error
			}
			err := json.Unmarshal(message, &answer)
			if answer.Error != nil {
				err = answer.Error
			}
			return answer.Result, err
		}
		if err := l.toEditor(message); err != nil {
			return nil, err
		}
	}
}
