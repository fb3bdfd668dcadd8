package mcprelay

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// relay is what is between a client and a server.
type relay struct {
	options Options
	log     *slog.Logger
	roots   func() json.RawMessage // the newest result of roots/list
	client  *writer
	server  *writer
	calls   *calls
	nonce   string // of this relay, so that what it makes is told from what others do

	mu     sync.Mutex
	legacy phase // of the client that sends initialize
	due    bool  // the roots changed before the server could be told
}

// phase is how far a client of the older revisions has come.
type phase int

const (
	before      phase = iota
	initialized       // it has sent notifications/initialized
)

func newRelay(o Options, roots func() json.RawMessage, client, server io.Writer) *relay {
	nonce := random(16)
	return &relay{
		options: o, log: o.Logger, roots: roots, nonce: nonce,
		client: newWriter(client, o.MaxOwn), server: newWriter(server, o.MaxOwn), calls: newCalls(nonce, o.MaxHeld),
	}
}

// fromClient passes on what the client sends, until that ends or the server takes no more. The error is that of reading.
func (r *relay) fromClient(in io.Reader) error {
	reading, _ := pump(jsonrpc.NewReader(in, r.options.MaxMessage), r.server, r.clientSent)
	return reading
}

// fromServer passes on what the server sends, until that ends or the client takes no more. The error is that of writing.
func (r *relay) fromServer(in io.Reader) error {
	_, writing := pump(jsonrpc.NewReader(in, r.options.MaxMessage), r.client, r.serverSent)
	return writing
}

// keptLong is the most memory that is kept for the next line.
const keptLong = 1 << 20

// pump has each line looked at, and passes on what look makes of it, which is nil for nothing. after is called when
// that was written. It returns nothing at the end of in.
func pump(in *jsonrpc.Reader, to *writer, look func(line []byte) (pass []byte, after func())) (reading, writing error) {
	var line []byte
	for reading == nil && writing == nil {
		if cap(line) > keptLong {
			line = nil
		}
		line, reading = in.Append(line[:0])
		if _, long := errors.AsType[*jsonrpc.TooLongError](reading); long {
			reading, writing = to.passLong(line, in)
			continue
		}
		if reading != nil {
			break
		}
		pass, after := look(line)
		if writing = to.pass(pass); writing == nil && after != nil {
			after()
		}
	}
	if errors.Is(reading, io.EOF) {
		reading = nil
	}
	return reading, writing
}

// changed has a server told that the roots are others. One of 2026-07-28 asks in each call.
func (r *relay) changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.legacy == before {
		r.due = true
		return
	}
	r.announce()
}

// starting takes note that the client sends initialize: the server has not asked yet.
func (r *relay) starting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.legacy, r.due = before, false
}

// started takes note that the client has sent notifications/initialized.
func (r *relay) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.legacy = initialized
	if r.due {
		r.due = false
		r.announce()
	}
}

func (r *relay) announce() {
	if !r.server.send([]byte(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)) {
		r.log.Warn("the MCP server does not read: it is not told that the roots have changed")
	}
}

// envelope is what the relay makes of the state that a server gives a client for the call to be repeated with, when
// it has taken questions from it.
type envelope struct {
	// Keys are those of the questions for the roots.
	Keys []string `json:"keys"`
	// State is the server's, nil if it gave none.
	State json.RawMessage `json:"state,omitempty"`
}

// seal is an envelope as a requestState.
func (r *relay) seal(e envelope) (json.RawMessage, error) {
	raw, err := json.Marshal(e)
	return quoted(r.nonce + base64.RawURLEncoding.EncodeToString(raw)), err
}

// unseal opens what seal made. ok is false for any other state.
func (r *relay) unseal(state json.RawMessage) (e envelope, ok bool) {
	text, _ := textOf(state)
	sealed, ok := strings.CutPrefix(text, r.nonce)
	if !ok {
		return e, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	return e, err == nil && json.Unmarshal(raw, &e) == nil && len(e.Keys) <= r.options.MaxQuestions
}

// capabilitiesKey is where a modern request declares what its client can do.
const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities"

// clientSent is what the server is given of a line from the client.
func (r *relay) clientSent(line []byte) (pass []byte, after func()) {
	m := read(line)
	switch {
	case m.method == "initialize" && m.id != nil:
		r.starting()
		return declared(line, m), nil
	case m.isRequest() && isObject(at(m.params, "_meta", capabilitiesKey)):
		return r.modern(line, m), nil
	case m.id != nil:
	case m.method == "notifications/initialized":
		return line, r.started
	case m.method == "notifications/roots/list_changed":
		return nil, nil
	case m.method == "notifications/cancelled":
		return r.cancelled(line, m), nil
	}
	return line, nil
}

// declared is an initialize request that declares roots. One that is malformed is the server's to refuse.
func declared(line []byte, m message) []byte {
	if !isObject(at(m.params, "capabilities")) || string(at(m.params, "capabilities", "roots", "listChanged")) == "true" {
		return line
	}
	return edited(line, json.RawMessage(`{"listChanged":true}`), "params", "capabilities", "roots")
}

// edited is a line with another value at a path, or as it is if it has no such path.
func edited(line []byte, value json.RawMessage, path ...string) []byte {
	changed, err := put(line, value, path...)
	if err != nil {
		return line
	}
	return changed
}

// modern is a request of 2026-07-28 that declares roots, and is held if its result can ask for them.
func (r *relay) modern(line []byte, m message) []byte {
	if !isObject(at(m.params, "_meta", capabilitiesKey, "roots")) {
		line = edited(line, json.RawMessage(`{}`), "params", "_meta", capabilitiesKey, "roots")
	}
	switch m.method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return line
	}
	if e, ok := r.unseal(at(m.params, "requestState")); ok {
		line = r.completed(line, e)
	}
	if err := r.calls.hold(line, m.id); err != nil {
		r.toClient(refusal(m.id, err.Error()))
		return nil
	}
	return line
}

// completed is a call that the client repeats, with the roots among its answers and the server's own state.
func (r *relay) completed(line []byte, e envelope) []byte {
	answers := at(line, "params", "inputResponses")
	if !isObject(answers) {
		answers = nil
	}
	return repeated(line, r.answered(answers, e.Keys), e.State)
}

// answered are answers with the roots added for each of keys.
func (r *relay) answered(answers json.RawMessage, keys []string) json.RawMessage {
	list := r.roots()
	for _, key := range keys {
		if more, err := strictjson.Put(answers, key, list); err == nil {
			answers = more
		}
	}
	return answers
}

// repeated is a call with other answers and another state, none if it is nil.
func repeated(line []byte, answers, state json.RawMessage) []byte {
	line = edited(line, answers, "params", "inputResponses")
	if state != nil {
		return edited(line, state, "params", "requestState")
	}
	_, params, err := strictjson.Take(at(line, "params"), "requestState")
	if err != nil {
		return line
	}
	return edited(line, params, "params")
}

// cancelled is a cancellation with the id by which the server knows the call.
func (r *relay) cancelled(line []byte, m message) []byte {
	id := at(m.params, "requestId")
	if id == nil {
		return line
	}
	if theirs := r.calls.cancelled(id); theirs != nil {
		return edited(line, theirs, "params", "requestId")
	}
	return line
}

// toClient has the client sent a message of the relay's own.
func (r *relay) toClient(message []byte) {
	if !r.client.send(message) {
		r.client.warned.Do(func() { r.log.Warn("the MCP client does not read: refusals are not sent") })
	}
}

const rootsList = "roots/list"

// serverSent is what the client is given of a line from the server.
func (r *relay) serverSent(line []byte) (pass []byte, after func()) {
	m := read(line)
	switch {
	case m.method == rootsList && m.id != nil:
		if !r.server.send(answer(m.id, r.roots())) {
			r.server.warned.Do(func() { r.log.Warn("the MCP server does not read: its questions for the roots are not answered") })
		}
		return nil, nil
	case m.method == "" && m.id != nil:
		return r.response(line, m), nil
	}
	return line, nil
}

// response is a server's answer as the client is given it.
func (r *relay) response(line []byte, m message) []byte {
	held, ours := r.calls.find(m.id)
	switch {
	case held == nil && ours:
		return nil // of a call that was cancelled
	case held == nil:
		return line
	}
	all := at(m.result, "inputRequests")
	asked, _ := strictjson.ParseObject(all) // what is no object asks nothing
	if n, most := asked.Len(), r.options.MaxQuestions; n > most {
		r.calls.finish(held)
		return append(refusal(held.id, fmt.Sprintf("the server asked %d questions in one result, and %d are the limit", n, most)), '\n')
	}
	keys, others := questions(all, asked)
	switch {
	case len(keys) == 0:
	case others == nil:
		return r.repeat(held, m.result, keys)
	default:
		line = r.without(line, m.result, keys, others)
	}
	r.calls.finish(held)
	if ours {
		line = edited(line, held.id, "id")
	}
	return line
}

// questions are the keys of those that are for the roots, and the other questions, nil if there are none.
func questions(all json.RawMessage, asked strictjson.Object) (keys []string, others json.RawMessage) {
	for key, question := range asked.All() {
		if method, _ := textOf(at(question, "method")); method != rootsList {
			continue
		}
		keys = append(keys, key)
		if _, left, err := strictjson.Take(all, key); err == nil {
			all = left
		}
	}
	if len(keys) == asked.Len() {
		return keys, nil
	}
	return keys, all
}

// repeat calls again, with the roots. The client gets what the server answers then.
func (r *relay) repeat(held *call, result json.RawMessage, keys []string) []byte {
	if held.rounds >= r.options.MaxRounds {
		r.calls.finish(held)
		return append(refusal(held.id, fmt.Sprintf("the server asked for the roots %d times and gave no result", held.rounds)), '\n')
	}
	id, ok := r.calls.again(held)
	if !ok {
		return nil // it was cancelled
	}
	line := repeated(held.line, r.answered(nil, keys), at(result, "requestState"))
	line = edited(line, id, "id")
	if !r.server.send(withoutEnd(line)) {
		r.calls.finish(held)
		return append(refusal(held.id, "the server asks for the roots and does not read the answers"), '\n')
	}
	return nil
}

// withoutEnd is a line without its end.
func withoutEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	return line
}

// without is a result that asks for what the client can answer, and not for the roots.
func (r *relay) without(line []byte, result json.RawMessage, keys []string, others json.RawMessage) []byte {
	state, err := r.seal(envelope{Keys: keys, State: at(result, "requestState")})
	if err != nil {
		return line
	}
	line = edited(line, others, "result", "inputRequests")
	return edited(line, state, "result", "requestState")
}

// call is a call of a modern client that the relay may have to repeat.
type call struct {
	line   []byte          // as it was sent to the server first
	id     json.RawMessage // the client's
	at     string          // key of the id that the server has to answer now
	rounds int             // how often it was sent
}

// calls are those that are not answered.
type calls struct {
	prefix string // of the relay's own ids
	max    int

	mu    sync.Mutex
	held  map[string]*call // by at
	bytes int
	last  int
	empty chan struct{} // closed while none is held
}

// idPrefix begins the relay's own ids.
const idPrefix = "acp-agent-relay-"

func newCalls(nonce string, max int) *calls {
	c := &calls{prefix: idPrefix + nonce + "-", max: max, held: map[string]*call{}, empty: make(chan struct{})}
	close(c.empty)
	return c
}

// maxCalls is how many calls may be held.
const maxCalls = 4096

// hold keeps a call with a copy of its line. It refuses one that is too many.
func (c *calls) hold(line []byte, id json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.bytes+len(line) > c.max:
		return fmt.Errorf("calls that are not answered hold %d bytes, and %d are the limit: wait for some", c.bytes, c.max)
	case len(c.held) >= maxCalls:
		return fmt.Errorf("%d calls are not answered, which is the limit: wait for some", maxCalls)
	}
	key := idKey(id)
	c.remove(c.held[key])
	c.keep(&call{line: append([]byte(nil), line...), id: append(json.RawMessage(nil), id...), at: key, rounds: 1})
	return nil
}

// find is the call that an answer is for, nil if it is not held. ours says that the id is one of the relay's.
func (c *calls) find(id json.RawMessage) (found *call, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := textOf(id)
	return c.held[idKey(id)], ok && strings.HasPrefix(text, c.prefix)
}

// again returns the new id under which a call is repeated; ok is false if it was cancelled meanwhile.
func (c *calls) again(repeated *call) (id json.RawMessage, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[repeated.at] != repeated {
		return nil, false
	}
	c.last++
	id = quoted(fmt.Sprintf("%s%d", c.prefix, c.last))
	delete(c.held, repeated.at)
	repeated.at = idKey(id)
	repeated.rounds++
	c.held[repeated.at] = repeated
	return id, true
}

// finish forgets a call that was answered.
func (c *calls) finish(answered *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(answered)
}

// cancelled forgets the call with an id of the client's. It returns the id that the server knows it by, nil if that is
// the same.
func (c *calls) cancelled(id json.RawMessage) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := idKey(id)
	for at, held := range c.held {
		if idKey(held.id) != key {
			continue
		}
		c.remove(held)
		if at == key {
			return nil
		}
		return json.RawMessage(at)
	}
	return nil
}

// none is closed once no call is held.
func (c *calls) none() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.empty
}

func (c *calls) keep(kept *call) {
	if len(c.held) == 0 {
		c.empty = make(chan struct{})
	}
	c.held[kept.at] = kept
	c.bytes += len(kept.line)
}

func (c *calls) remove(gone *call) {
	if gone == nil || c.held[gone.at] != gone {
		return
	}
	delete(c.held, gone.at)
	c.bytes -= len(gone.line)
	if len(c.held) == 0 {
		close(c.empty)
	}
}
