package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// restricted is the connection of a device that may not do everything. What the device may not send
// is answered with an error and goes no further; an answer that it may not give becomes no answer.
type restricted struct {
	*paced
	role  Role
	store sessionstore.Store // of the user
	audit *slog.Logger       // names the device

	writing sync.Mutex // of one message
	mu      sync.Mutex
	asked   map[string]asked // the questions that it has not answered, by the id of the request
	ids     []string         // of asked, the oldest first
}

// maxAsked is how many questions a device can answer, the newest ones. Questions that were answered
// elsewhere are among them: the server says that an answer came too late.
const maxAsked = 100

// asked is a question that a device was sent.
type asked struct {
	method  string
	options []string // the ids of those that the device may choose
}

// restrict returns the connection of a device with a role.
func restrict(c *paced, role Role, store sessionstore.Store, audit *slog.Logger) *restricted {
	return &restricted{paced: c, role: role, store: store, audit: audit, asked: make(map[string]asked)}
}

// Read implements acp.Conn.
func (c *restricted) Read() ([]byte, error) {
	for {
		message, err := c.paced.Read()
		if err != nil {
			return nil, err
		}
		passed, err := c.check(message)
		if err != nil {
			return nil, err
		}
		if passed != nil {
			return passed, nil
		}
	}
}

// check returns what is passed on of a message from the device, nil if it is nothing. An error ends
// the connection.
func (c *restricted) check(message []byte) ([]byte, error) {
	o, err := strictjson.ParseObject(message)
	if err != nil {
		return nil, fmt.Errorf("the device sent something that is not a message: %w", err)
	}
	if name, twice := o.Duplicate(); twice {
		return nil, fmt.Errorf("the device sent a message with two members %q", text.Name(name))
	}
	if !o.Field("method").Present() {
		return c.answered(o)
	}
	method, _ := o.Field("method").Text()
	id := o.Field("id")
	switch {
	case !c.role.May(method):
		c.audit.Info("refused a request of a device that may not send it",
			"method", text.Truncate(method, maxAudited))
		if !id.Present() {
			return nil, nil
		}
		return nil, c.refuse(id.Raw(), "this device may not do that: pair it with another role")
	case method == protocol.Initialize:
		return c.initializing(o)
	case method == protocol.SessionLoad || method == protocol.SessionResume:
		return c.opening(method, o)
	}
	return message, nil
}

// initializing returns the first request of a device. The device offers nothing that would be used
// in place of what another client offers, such as files and terminals.
func (c *restricted) initializing(o strictjson.Object) ([]byte, error) {
	params, _ := o.Field("params").Object()
	capabilities := map[string]any{"elicitation": map[string]any{"form": map[string]any{}},
		"_meta": map[string]any{"acp-agent": map[string]bool{"turnEnds": true}}}
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": o.Field("id").Raw(),
		"method": protocol.Initialize, "params": map[string]any{
			"protocolVersion":    params.Field("protocolVersion").Raw(),
			"clientCapabilities": capabilities,
			"clientInfo":         map[string]string{"name": "acp-agent-page", "version": "1"},
		}})
}

// opening returns the request of a device to open a session, with the folders that the session has:
// a device that only reads must not change them.
func (c *restricted) opening(method string, o strictjson.Object) ([]byte, error) {
	params, _ := o.Field("params").Object()
	id, _ := params.Field(protocol.SessionID).Text()
	s, err := c.store.Get(context.Background(), sessionstore.ID(id))
	raw := o.Field("id").Raw()
	if raw == nil {
		return nil, nil
	}
	if err != nil {
		return nil, c.refuse(raw, "the session does not exist")
	}
	roots := s.Keys.Roots
	additional := append([]string{}, roots.Additional().Strings()...) // never null
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": raw, "method": method, "params": map[string]any{
		protocol.SessionID: id, "cwd": roots.Cwd().String(), "additionalDirectories": additional,
		"mcpServers": []any{},
	}})
}

// answered returns the answer of a device to a question, or one that says that it gives none.
func (c *restricted) answered(o strictjson.Object) ([]byte, error) {
	id := o.Field("id").Raw()
	c.mu.Lock()
	question, ok := c.asked[string(id)]
	delete(c.asked, string(id))
	c.mu.Unlock()
	if !ok {
		return nil, nil // nobody waits for it
	}
	var result struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			ID      string `json:"optionId"`
		} `json:"outcome"`
		Action string `json:"action"`
	}
	_ = strictjson.Decode(o.Field("result").Raw(), &result)
	none := map[string]any{"action": "cancel"}
	if question.method == protocol.RequestPermission {
		none = map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": none}
	chosen := result.Outcome.ID
	switch {
	case c.role != Answer:
	case question.method == protocol.RequestPermission &&
		result.Outcome.Outcome == "selected" && slices.Contains(question.options, chosen):
		answer["result"] = map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": chosen}}
	case question.method == protocol.ElicitationCreate && result.Action != "":
		answer["result"] = o.Field("result").Raw()
	}
	return json.Marshal(answer)
}

// refuse answers a request with an error.
func (c *restricted) refuse(id json.RawMessage, reason string) error {
	const invalidRequest = -32600
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": invalidRequest, "message": reason}})
	if err != nil {
		return err
	}
	return c.send(context.Background(), message)
}

// Write implements acp.Conn. It notes questions, and leaves out the options that a device must not
// choose: those that hold for more than this question.
func (c *restricted) Write(ctx context.Context, message []byte) error {
	var method string
	_ = strictjson.Decode(strictjson.Find(message, "method"), &method)
	if method == protocol.RequestPermission || method == protocol.ElicitationCreate {
		message = c.ask(method, message)
	}
	return c.send(ctx, message)
}

// ask notes a question and returns it as the device gets it.
func (c *restricted) ask(method string, message json.RawMessage) json.RawMessage {
	question := asked{method: method}
	if method == protocol.RequestPermission {
		params := strictjson.Find(message, "params")
		var p struct {
			Options []json.RawMessage `json:"options"`
		}
		_ = strictjson.Decode(params, &p)
		offered := []json.RawMessage{}
		for _, raw := range p.Options {
			var o struct {
				ID   string `json:"optionId"`
				Kind string `json:"kind"`
			}
			err := strictjson.Decode(raw, &o)
			if err == nil && c.role == Answer && o.ID != "" && strings.HasSuffix(o.Kind, "_once") {
				offered = append(offered, raw)
				question.options = append(question.options, o.ID)
			}
		}
		params = strictjson.Set(params, "options", strictjson.Encode(offered))
		message = strictjson.Set(message, "params", params)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := string(strictjson.Find(message, "id"))
	c.asked[id], c.ids = question, append(c.ids, id)
	if len(c.ids) > maxAsked {
		delete(c.asked, c.ids[0])
		c.ids = c.ids[1:]
	}
	return message
}

// send writes one message at a time.
func (c *restricted) send(ctx context.Context, message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.Conn.Write(ctx, message)
}
