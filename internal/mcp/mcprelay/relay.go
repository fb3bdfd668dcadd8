package mcprelay

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

const (
	// capabilitiesKey is where a request of a modern client declares the client's capabilities.
	capabilitiesKey = mcp.MetaKeyClientCapabilities

	listChanged = `{"jsonrpc":"2.0","method":"` + mcproots.ChangedMethod + `"}`

	// maxCalls bounds the calls that are kept for repetition. Further calls pass unchanged.
	maxCalls = 4096
)

// relay edits the messages between a client and a server. Of a message that it edits, other members
// keep their bytes.
type relay struct {
	Options
	// roots returns the newest result of roots/list. Without a publisher it returns nil, and
	// messages pass unchanged.
	roots  func() json.RawMessage
	client *lineWriter
	server *lineWriter
	nonce  string // distinguishes our own ids and states from others

	mu          sync.Mutex
	initialized bool // a legacy client has sent notifications/initialized
	pending     bool // the roots have changed before that
	calls       map[string]*keptCall
	readOnly    map[string]bool // the tools that claim to change nothing
	lastID      int
}

// keptCall is an unanswered call of a modern client, which the relay repeats with the roots if the
// server's result requests them.
type keptCall struct {
	line     []byte          // as first sent to the server
	clientID json.RawMessage // the id that the client expects
	serverID json.RawMessage // the id that the server must answer now
	rounds   int             // how often the call was sent
}

func newRelay(o Options, roots func() json.RawMessage, client, server io.Writer) *relay {
	return &relay{
		Options: o, roots: roots, client: newLineWriter(client),
		server: newLineWriter(server),
		nonce:  randomHex(16), calls: map[string]*keptCall{}, readOnly: map[string]bool{},
	}
}

// relayClient relays the client's messages until they end or the server no longer reads. It returns
// the read error.
func (r *relay) relayClient(in io.Reader) error {
	readErr, _ := copyLines(r.server, jsonrpc.NewReader(in, r.MaxMessage), r.editClientLine,
		func(line []byte) { r.refuseLong(line, r.client, r.server) })
	return readErr
}

// relayServer relays the server's messages until they end or the client no longer reads. It returns
// the write error.
func (r *relay) relayServer(in io.Reader) error {
	_, writeErr := copyLines(r.client, jsonrpc.NewReader(in, r.MaxMessage), r.editServerLine,
		func(line []byte) { r.refuseLong(line, r.server, r.client) })
	return writeErr
}

// refuseLong answers a line that is too long and not passed on, of which only the beginning is
// known: a request to its sender, and an answer to the peer that waits for it.
func (r *relay) refuseLong(line []byte, from, to *lineWriter) {
	outline := strictjson.Outline(line)
	id, method := strictjson.Find(outline, "id"), strictjson.Find(outline, "method")
	r.Logger.Warn("left out a message that is too long", "limit", r.MaxMessage, "method", string(method))
	if id == nil {
		return
	}
	answer := failure(id, "acp-agent left out a message of more than "+text.Size(r.MaxMessage)+
		", the limit that --max-line sets")
	if method != nil {
		to = from
	} else if to == r.client { // it may answer a call that was repeated
		answer = r.editServerLine(answer)
	}
	if answer != nil {
		to.queue(answer)
	}
}

// rootsChanged tells a legacy server that the roots have changed. A modern server asks in each
// call.
func (r *relay) rootsChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.initialized {
		r.pending = true
	} else if !r.server.queue([]byte(listChanged)) {
		r.Logger.Warn("cannot tell the MCP server that the roots have changed: it does not read")
	}
}

// editClientLine returns the line to send to the server for a line from the client, or nil for
// none.
func (r *relay) editClientLine(line []byte) []byte {
	if r.refuses(line) {
		return nil
	}
	m := parse(line)
	switch {
	case m.method != "" && m.id != nil &&
		strictjson.IsObject(strictjson.Last(m.params, "_meta", capabilitiesKey)):
		return r.editModernRequest(line, m)
	case m.method == "notifications/cancelled" && m.id == nil:
		return r.cancelCall(line, m)
	case r.roots() == nil:
		return line
	case m.method == "initialize" && m.id != nil:
		return r.declareRoots(line, m)
	case m.method == "notifications/initialized" && m.id == nil:
		return r.clientInitialized(line)
	case m.method == mcproots.ChangedMethod && m.id == nil:
		return nil // the client's roots are not the session's
	default:
		return line
	}
}

// declareRoots adds roots to the capabilities in a legacy client's initialize request.
func (r *relay) declareRoots(line []byte, m relayedMessage) []byte {
	r.mu.Lock()
	r.initialized, r.pending = false, false
	r.mu.Unlock()
	if !strictjson.IsObject(strictjson.Last(m.params, "capabilities")) ||
		string(strictjson.Last(m.params, "capabilities", "roots", "listChanged")) == "true" {
		return line
	}
	return strictjson.SetAt(line, json.RawMessage(`{"listChanged":true}`),
		"params", "capabilities", "roots")
}

// clientInitialized adds the notification that the roots have changed, if they have changed since
// initialize.
func (r *relay) clientInitialized(line []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending {
		line = slices.Concat(bytes.TrimRight(line, "\r\n"), []byte("\n"+listChanged+"\n"))
	}
	r.initialized, r.pending = true, false
	return line
}

// editModernRequest adds roots to the capabilities in a request, and keeps it if its result may
// request the roots.
func (r *relay) editModernRequest(line []byte, m relayedMessage) []byte {
	list := r.roots()
	declared := strictjson.Last(m.params, "_meta", capabilitiesKey, "roots")
	if list != nil && !strictjson.IsObject(declared) {
		line = strictjson.SetAt(line, json.RawMessage(`{}`),
			"params", "_meta", capabilitiesKey, "roots")
	}
	if !mcproots.MayAsk(m.method) {
		return line
	}
	if s, ok := r.unseal(strictjson.Last(m.params, "requestState")); ok {
		line = withAnswers(line, strictjson.Last(m.params, "inputResponses"), s.Keys, list, s.State)
	}
	if list != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keepLocked(&keptCall{line: bytes.Clone(line), clientID: bytes.Clone(m.id),
			serverID: bytes.Clone(m.id), rounds: 1})
	}
	return line
}

// cancelCall replaces the id in a cancellation by the id with which the call was last sent.
func (r *relay) cancelCall(line []byte, m relayedMessage) []byte {
	key := idKey(strictjson.Last(m.params, "requestId"))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if idKey(c.clientID) == key {
			delete(r.calls, idKey(c.serverID))
			if c.rounds > 1 {
				line = strictjson.SetAt(line, c.serverID, "params", "requestId")
			}
			break
		}
	}
	return line
}

// editServerLine returns the line to send to the client for a line from the server, or nil for
// none.
func (r *relay) editServerLine(line []byte) []byte {
	m := parse(line)
	if list := strictjson.Last(m.result, "tools"); list != nil {
		r.noteClaims(list)
	}
	switch {
	case m.method == mcproots.ListMethod && m.id != nil:
		if list := r.roots(); list != nil && r.server.queue(response(m.id, "result", list)) {
			return nil
		}
		return line
	case m.method == "" && m.id != nil:
		return r.editResponse(line, m)
	default:
		return line
	}
}

// editResponse repeats a call if its result requests the roots and nothing else. If the result
// requests other input too, it is passed on without the request for the roots, which are added when
// the client repeats the call.
func (r *relay) editResponse(line []byte, m relayedMessage) []byte {
	c := r.take(m.id)
	if c == nil {
		if strings.HasPrefix(strictjson.FindText(m.id), r.idPrefix()) {
			return nil // the client has cancelled the call
		}
		return line
	}
	state := strictjson.Last(m.result, "requestState")
	keys, others := rootsRequests(strictjson.Last(m.result, "inputRequests"))
	switch list := r.roots(); {
	case list == nil || len(keys) == 0:
	case others == nil:
		if r.repeat(c, keys, list, state) {
			return nil
		}
	default:
		line = strictjson.SetAt(line, others, "result", "inputRequests")
		sealed := r.seal(sealedState{Keys: keys, State: state})
		line = strictjson.SetAt(line, sealed, "result", "requestState")
	}
	if c.rounds > 1 {
		line = strictjson.SetAt(line, c.clientID, "id")
	}
	return line
}

// rootsRequests returns the keys of the requests for the roots, and the other requests, or nil.
func rootsRequests(all json.RawMessage) (keys []string, others json.RawMessage) {
	requests, err := strictjson.ParseObject(all)
	if err != nil || requests.Len() > mcproots.MaxInputRequests {
		return nil, nil
	}
	others = all
	for key, request := range requests.All() {
		if strictjson.FindText(strictjson.Last(request, "method")) == mcproots.ListMethod {
			keys = append(keys, key)
			others = strictjson.Remove(others, key)
		}
	}
	if len(keys) == requests.Len() {
		return keys, nil
	}
	return keys, others
}

// repeat sends a call again, with the roots as the answer to the requests with the given keys. It
// returns false if the call has been repeated too often or the server does not read.
func (r *relay) repeat(c *keptCall, keys []string, list, state json.RawMessage) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := strictjson.Text(fmt.Sprintf("%s%d", r.idPrefix(), r.lastID+1))
	line := strictjson.SetAt(withAnswers(c.line, nil, keys, list, state), id, "id")
	if c.rounds == mcproots.MaxRounds || !r.server.queue(bytes.TrimRight(line, "\r\n")) {
		return false
	}
	r.lastID++
	c.serverID, c.rounds = id, c.rounds+1
	r.keepLocked(c)
	return true
}

// idPrefix returns the beginning of our own ids.
func (r *relay) idPrefix() string { return "acp-agent-relay-" + r.nonce + "-" }

// withAnswers returns a call in which the roots are the answer for each key, with requestState set,
// or removed if it is nil.
func withAnswers(
	line, answers json.RawMessage, keys []string, list, state json.RawMessage,
) json.RawMessage {
	if !strictjson.IsObject(answers) {
		answers = json.RawMessage(`{}`)
	}
	if list != nil {
		for _, key := range keys {
			answers = strictjson.SetAt(answers, list, key)
		}
	}
	line = strictjson.SetAt(line, answers, "params", "inputResponses")
	if state == nil {
		return strictjson.Remove(line, "params", "requestState")
	}
	return strictjson.SetAt(line, state, "params", "requestState")
}

// keepLocked keeps a call until it is answered.
func (r *relay) keepLocked(c *keptCall) {
	if len(r.calls) < maxCalls {
		r.calls[idKey(c.serverID)] = c
	}
}

// take removes and returns the call that a response with this id answers, or nil.
func (r *relay) take(id json.RawMessage) *keptCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[idKey(id)]
	delete(r.calls, idKey(id))
	return c
}

// sealedState is the requestState of a result from which requests for the roots were removed.
type sealedState struct {
	Keys  []string        `json:"keys"`            // of the requests for the roots
	State json.RawMessage `json:"state,omitempty"` // the server's, nil if it gave none
}

// seal encodes a state as a JSON string that the client returns when it repeats the call.
func (r *relay) seal(s sealedState) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		return s.State
	}
	return strictjson.Text(r.nonce + base64.RawURLEncoding.EncodeToString(raw))
}

// unseal decodes a result of seal. ok is false for any other state.
func (r *relay) unseal(state json.RawMessage) (s sealedState, ok bool) {
	sealed, ok := strings.CutPrefix(strictjson.FindText(state), r.nonce)
	if !ok {
		return s, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	return s, err == nil && json.Unmarshal(raw, &s) == nil && len(s.Keys) <= mcproots.MaxInputRequests
}
