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
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// A server that is updated ends its connections once no turn is left. The editor need not know: the
// link connects again, and initializes and resumes what the editor has initialized and opened.
//
// Both sides number their requests again on each connection. So on every connection but the first,
// the link marks the ids in requests from the server, and drops answers from the editor to an
// earlier server.

const (
	// After maxUnsteady connections in a row that have each ended within steady, a link gives up
	// with the next attempt that fails.
	steady, maxUnsteady = 10 * time.Second, 5
	cancelRequest       = `"$/cancel_request"`
	// maxWaiting limits the lines of the editor that wait for a server, as during a hand-over.
	maxWaiting = 100
)

// fromEditor notes a request in a line of the editor, and returns the line for the server, nil if
// it answers a request of an earlier one.
func (l *Link) fromEditor(line []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := strictjson.Find(line, "id")
	switch {
	case id == nil:
	case strictjson.Find(line, "method") != nil:
		l.open[string(id)] = line
	case l.earlier > 0:
		return l.unmarkLocked(line)
	}
	return line
}

// fromServer notes what a message of the server answers, and returns the message for the editor. It
// returns nil if another server will answer the request.
func (l *Link) fromServer(message []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if method := strictjson.Find(message, "method"); method != nil {
		return l.askedLocked(message, method)
	}
	id := string(strictjson.Find(message, "id"))
	request := l.open[id]
	if result := strictjson.Find(message, "result"); result != nil {
		l.noteResultLocked(request, result)
	} else if request != nil && l.initialize != nil &&
		isShuttingDown(strictjson.Find(message, "error")) {
		l.held = append(l.held, request)
		message = nil
	}
	delete(l.open, id)
	return message
}

// isShuttingDown reports whether an error in JSON says that the server has not begun to serve a
// request because it is shutting down.
func isShuttingDown(err json.RawMessage) bool {
	return string(strictjson.Find(err, "data", "reason")) == `"shutting_down"`
}

// askedLocked returns a request or notification of the server for the editor.
func (l *Link) askedLocked(message, method json.RawMessage) []byte {
	if l.earlier == 0 {
		return message
	}
	if id := strictjson.Find(message, "id"); id != nil {
		return strictjson.Set(message, "id", l.markLocked(id))
	}
	if string(method) != cancelRequest {
		return message
	}
	cancelled := strictjson.Find(message, "params", "requestId")
	return strictjson.SetAt(message, l.markLocked(cancelled), "params", "requestId")
}

// noteResultLocked notes the result of a request.
func (l *Link) noteResultLocked(request, result json.RawMessage) {
	method, params := strictjson.FindText(request, "method"), strictjson.Find(request, "params")
	names := params // the session
	if method == protocol.SessionNew || method == protocol.SessionFork {
		names = result
	}
	session := strictjson.FindText(names, protocol.SessionID)
	switch method {
	case protocol.Initialize:
		l.initialize = bytes.Clone(params)
	case protocol.SessionNew, protocol.SessionLoad, protocol.SessionResume, protocol.SessionFork:
		l.sessions[session] = bytes.Clone(params)
	case protocol.SessionClose, protocol.SessionDelete:
		delete(l.sessions, session)
	}
}

// markLocked returns the id that the editor gets for a request of the server.
func (l *Link) markLocked(id json.RawMessage) json.RawMessage {
	return strictjson.Encode(fmt.Sprintf("%d:%s", l.earlier, id))
}

// unmarkLocked undoes markLocked in an answer of the editor. It returns nil if the answer is to a
// request of an earlier server.
func (l *Link) unmarkLocked(line []byte) []byte {
	number, own, _ := strings.Cut(strictjson.FindText(line, "id"), ":")
	if number != strconv.Itoa(l.earlier) {
		return nil
	}
	return strictjson.Set(line, "id", json.RawMessage(own))
}

// canHandOver reports whether another connection can take the place of one that has ended.
func (l *Link) canHandOver(ctx context.Context, reason error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := errors.Is(reason, errClosed) || errors.Is(reason, websocket.ErrLost)
	return ended && ctx.Err() == nil && l.leaving.Err() == nil && l.initialize != nil
}

// errLeft ends a hand-over because the editor has left.
var errLeft = errors.New("the editor has left")

// handOver returns a connection in the place of one that has ended for a reason, and sends the
// requests that the earlier server has not begun to serve. Its error says why that was not possible;
// then all requests of the editor are open.
func (l *Link) handOver(
	ctx context.Context, ended websocket.Conn, reason error,
) (websocket.Conn, error) {
	lines := l.takeUnserved(ended)
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
		if line = l.fromEditor(line); line != nil && err == nil {
			_ = server.Write(ctx, line) // if it fails, this connection has ended too
		}
	}
	return server, err
}

// takeUnserved returns the messages of the editor that a server has not read, without answers to
// its requests, and the requests that it has not begun to serve. They are no longer open.
func (l *Link) takeUnserved(server websocket.Conn) (lines [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, l.held = l.held, nil
	for _, line := range server.Unread() {
		if strictjson.Find(line, "method") != nil {
			lines = append(lines, line)
			delete(l.open, string(strictjson.Find(line, "id")))
		}
	}
	return lines
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
		return nil, errLeft
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
	l.mu.Lock()
	l.earlier++
	initialize, sessions := l.initialize, maps.Clone(l.sessions)
	l.mu.Unlock()
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
