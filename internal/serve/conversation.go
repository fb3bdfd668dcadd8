package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// conversation is what a link knows of what its editor and the servers have said. Its methods are
// safe for concurrent use.
//
// Both sides number their requests again on each connection. So on every connection but the first,
// the conversation marks the ids in requests from the server, and drops answers from the editor to
// an earlier server.
type conversation struct {
	mu         sync.Mutex
	open       map[string]json.RawMessage // requests without an answer, by their id in JSON
	held       [][]byte                   // requests for the next server
	sessions   map[string]json.RawMessage // open sessions, with the params that opened them
	initialize json.RawMessage            // the params of initialize, once it has succeeded
	earlier    int                        // how many connections there were before this one
}

// fromEditor notes a request in a line of the editor, and returns the line for the server, nil if
// it answers a request of an earlier one.
func (c *conversation) fromEditor(line []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := strictjson.Find(line, "id")
	switch {
	case id == nil:
	case strictjson.Find(line, "method") != nil:
		c.open[string(id)] = line
	case c.earlier > 0:
		return c.unmarkLocked(line)
	}
	return line
}

// fromServer notes what a message of the server answers, and returns the message for the editor. It
// returns nil if another server will answer the request.
func (c *conversation) fromServer(message []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if method := strictjson.Find(message, "method"); method != nil {
		return c.askedLocked(message, method)
	}
	id := string(strictjson.Find(message, "id"))
	request := c.open[id]
	if result := strictjson.Find(message, "result"); result != nil {
		c.noteResultLocked(request, result)
	} else if request != nil && c.initialize != nil &&
		isShuttingDown(strictjson.Find(message, "error")) {
		c.held = append(c.held, request)
		message = nil
	}
	delete(c.open, id)
	return message
}

// isShuttingDown reports whether an error in JSON says that the server has not begun to serve a
// request because it is shutting down.
func isShuttingDown(err json.RawMessage) bool {
	return string(strictjson.Find(err, "data", "reason")) == `"shutting_down"`
}

// askedLocked returns a request or notification of the server for the editor.
func (c *conversation) askedLocked(message, method json.RawMessage) []byte {
	if c.earlier == 0 {
		return message
	}
	if id := strictjson.Find(message, "id"); id != nil {
		return strictjson.Set(message, "id", c.markLocked(id))
	}
	if string(method) != `"$/cancel_request"` {
		return message
	}
	cancelled := strictjson.Find(message, "params", "requestId")
	return strictjson.SetAt(message, c.markLocked(cancelled), "params", "requestId")
}

// noteResultLocked notes the result of a request.
func (c *conversation) noteResultLocked(request, result json.RawMessage) {
	method, params := strictjson.FindText(request, "method"), strictjson.Find(request, "params")
	names := params // the session
	if method == protocol.SessionNew || method == protocol.SessionFork {
		names = result
	}
	session := strictjson.FindText(names, protocol.SessionID)
	switch method {
	case protocol.Initialize:
		c.initialize = bytes.Clone(params)
	case protocol.SessionNew, protocol.SessionLoad, protocol.SessionResume, protocol.SessionFork:
		c.sessions[session] = bytes.Clone(params)
	case protocol.SessionClose, protocol.SessionDelete:
		delete(c.sessions, session)
	}
}

// markLocked returns the id that the editor gets for a request of the server.
func (c *conversation) markLocked(id json.RawMessage) json.RawMessage {
	return strictjson.Encode(fmt.Sprintf("%d:%s", c.earlier, id))
}

// unmarkLocked undoes markLocked in an answer of the editor. It returns nil if the answer is to a
// request of an earlier server.
func (c *conversation) unmarkLocked(line []byte) []byte {
	number, own, _ := strings.Cut(strictjson.FindText(line, "id"), ":")
	if number != strconv.Itoa(c.earlier) {
		return nil
	}
	return strictjson.Set(line, "id", json.RawMessage(own))
}

// takeUnserved returns the requests that a server has not begun to serve, and the messages that it
// has not read, without answers to its requests. They are no longer open.
func (c *conversation) takeUnserved(unread [][]byte) (lines [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines, c.held = c.held, nil
	for _, line := range unread {
		if strictjson.Find(line, "method") != nil {
			lines = append(lines, line)
			delete(c.open, string(strictjson.Find(line, "id")))
		}
	}
	return lines
}

// isHeld reports whether the only requests without an answer are those for the next server.
func (c *conversation) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held) > 0 && len(c.open) == 0
}

// takeOpen returns the ids of the open requests, which are then no longer open.
func (c *conversation) takeOpen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer clear(c.open)
	return slices.Collect(maps.Keys(c.open))
}

// isInitialized reports whether the editor can go on with another server.
func (c *conversation) isInitialized() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.initialize != nil
}

// again notes that there is another connection, and returns what it begins with: the params of
// initialize, and the open sessions with the params that opened them.
func (c *conversation) again() (initialize json.RawMessage, sessions map[string]json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.earlier++
	return c.initialize, maps.Clone(c.sessions)
}
