package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	// ErrInvalid means that the schema does not allow a message.
	ErrInvalid = errors.New("invalid by the schema")
	// ErrUndefined means that a message has members that the schema does not have.
	ErrUndefined = errors.New("not in the schema")
	// ErrAnswer means that a request has not exactly one answer.
	ErrAnswer = errors.New("not an answer")
)

// Conversation validates one connection. It must be given the lines of both sides in order. It is
// not safe for concurrent use.
type Conversation struct {
	editions []edition           // stable, unstable
	foreign  bool                // whether they are messages of an agent of others
	open     map[string][]string // methods of the client's unanswered requests, by id
	asked    map[string]bool     // ids of the agent's requests
}

// Follow returns the validation of a new connection. An agent of others, or one that relays its
// messages, is foreign: members may be those of the unstable schema, methods whose names begin with
// "_" are extensions, and a result of session/load may be null, because the documents of the
// protocol once showed that. Only foreign members are looked at in any depth.
func Follow(foreign bool) (*Conversation, error) {
	all, err := editions()
	return &Conversation{
		editions: all, foreign: foreign, open: map[string][]string{}, asked: map[string]bool{},
	}, err
}

// Client records a line of the client. It may be malformed.
func (c *Conversation) Client(line string) {
	var m struct {
		ID, Method json.RawMessage
	}
	if json.Unmarshal([]byte(line), &m) != nil || m.Method == nil || m.ID == nil {
		return
	}
	var method string // "" for a request that is answered with an error
	_ = json.Unmarshal(m.Method, &method)
	c.open[key(m.ID)] = append(c.open[key(m.ID)], method)
}

// key returns an id as it is compared: a text may be written with escapes.
func key(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) != nil {
		return string(id)
	}
	return strconv.Quote(text)
}

// Agent validates a line of the agent, without its newline.
func (c *Conversation) Agent(line string) error {
	if !utf8.ValidString(line) {
		return errors.New("not UTF-8")
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	for name := range m {
		if !strings.Contains(" jsonrpc id method params result error ", " "+name+" ") {
			return fmt.Errorf("unknown member %q of a message", name)
		}
	}
	if string(m["jsonrpc"]) != `"2.0"` {
		return errors.New("not JSON-RPC 2.0")
	}
	if m["method"] != nil {
		return c.call(m)
	}
	return c.response(m)
}

// call validates a request or notification of the agent.
func (c *Conversation) call(m map[string]json.RawMessage) error {
	var method string
	if err := json.Unmarshal(m["method"], &method); err != nil {
		return err
	}
	if m["result"] != nil || m["error"] != nil {
		return errors.New("the message is both a request and a response")
	}
	kind := "Notification"
	if id := string(m["id"]); id != "" {
		kind = "Request"
		if c.asked[id] {
			return fmt.Errorf("two requests have the id %s", id)
		}
		c.asked[id] = true
	}
	return c.against(kind, method, m["params"])
}

// response validates a response and removes its request from the unanswered ones.
func (c *Conversation) response(m map[string]json.RawMessage) error {
	id, given := m["id"]
	switch {
	case !given:
		return errors.New("a response has no id")
	case (m["result"] != nil) == (m["error"] != nil):
		return fmt.Errorf("%w: a response must have either a result or an error", ErrAnswer)
	case string(id) == "null":
		if m["error"] == nil {
			return errors.New("a result has the id null")
		}
		return c.against("Error", "", m["error"])
	}
	methods := c.open[key(id)]
	if len(methods) == 0 {
		return fmt.Errorf("%w: there is no unanswered request with the id %s", ErrAnswer, id)
	}
	if c.open[key(id)] = methods[1:]; len(methods) == 1 {
		delete(c.open, key(id))
	}
	if m["error"] != nil {
		return c.against("Error", "", m["error"])
	}
	if c.foreign && methods[0] == "session/load" && string(m["result"]) == "null" {
		return nil
	}
	return c.against("Response", methods[0], m["result"])
}

// against validates the params or the result of a method, or an error. A value is valid if it is so
// in one of the editions that are for this conversation. The unstable one has all members.
func (c *Conversation) against(kind, method string, raw json.RawMessage) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	var last edition
	name, invalid := "", error(nil)
	for _, e := range c.editions {
		if of := e.names[kind+" "+method]; of != "" && (c.foreign || name == "") {
			if err := e.validate(of, value); name == "" || err == nil {
				invalid = err
			}
			name, last = of, e
		}
	}
	switch {
	case name == "" && c.foreign && strings.HasPrefix(method, "_"):
		return nil // an extension
	case name == "":
		return fmt.Errorf("%w: an agent does not send %s as a %s", ErrInvalid, method,
			strings.ToLower(kind))
	case invalid != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, invalid)
	}
	found := slices.DeleteFunc(last.undefined(name, value), func(path string) bool {
		return c.foreign && slices.Contains(withdrawn, path) ||
			!c.foreign && strings.Contains(path, ".")
	})
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%s has %s: %w", name, strings.Join(found, ", "), ErrUndefined)
}
