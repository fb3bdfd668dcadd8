package mcprelay

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
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
