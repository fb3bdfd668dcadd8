package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Conversation is one connection. It must be shown the lines of both sides in order; it is
// not safe for concurrent use.
type Conversation struct {
	schema *Schema
	words  words
	open   map[string][]string // the client's unanswered requests: methods by id
	asked  map[string]bool     // the ids of the agent's requests
}

// words says whose an agent's words are.
type words int

const (
	ours    words = iota
	another       // those of an agent behind us, which are passed on as they are
)

// Conversation begins to watch a connection.
func (s *Schema) Conversation() *Conversation { return s.watch(ours) }

// Relayed is Conversation for an agent that passes on what another says: that may use members of the unstable
// schema, and methods of its own, whose names begin with "_".
func (s *Schema) Relayed() *Conversation { return s.watch(another) }

func (s *Schema) watch(of words) *Conversation {
	return &Conversation{schema: s, words: of, open: map[string][]string{}, asked: map[string]bool{}}
}

// Client takes a line of the client. It may be malformed, as a test sees fit.
func (c *Conversation) Client(line string) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal([]byte(line), &m) != nil || m.Method == "" || m.ID == nil {
		return
	}
	c.open[string(m.ID)] = append(c.open[string(m.ID)], m.Method)
}

// Agent takes a line of the agent, without its newline, and says what is wrong with it.
func (c *Conversation) Agent(line string) error {
	if err := c.check(line); err != nil {
		return fmt.Errorf("%w\nin the line %s", err, line)
	}
	return nil
}

// Unanswered are the requests of the client without a response, as "method id".
func (c *Conversation) Unanswered() []string {
	var all []string
	for id, methods := range c.open {
		for _, method := range methods {
			all = append(all, method+" "+id)
		}
	}
	return all
}

func (c *Conversation) check(line string) error {
	if !utf8.ValidString(line) {
		return errors.New("not UTF-8")
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	for name := range m {
		if !strings.Contains(" jsonrpc id method params result error ", " "+name+" ") {
			return fmt.Errorf("a message has no member %q", name)
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

// call checks a request or a notification of the agent.
func (c *Conversation) call(m map[string]json.RawMessage) error {
	var method string
	if err := json.Unmarshal(m["method"], &method); err != nil {
		return err
	}
	if m["result"] != nil || m["error"] != nil {
		return errors.New("both a call and a response")
	}
	table := c.schema.notifications
	if id := string(m["id"]); id != "" {
		table = c.schema.requests
		if c.asked[id] {
			return fmt.Errorf("two requests with id %s", id)
		}
		c.asked[id] = true
	}
	s, known := table[method]
	switch {
	case known:
		return c.against(s, m["params"])
	case c.extension(method):
		return nil
	default:
		return fmt.Errorf("the schema has no %s of an agent", method)
	}
}

// extension reports whether a method may be one that the schema does not have.
func (c *Conversation) extension(method string) bool {
	return c.words == another && strings.HasPrefix(method, "_")
}

// response checks a response and takes its request off the open ones.
func (c *Conversation) response(m map[string]json.RawMessage) error {
	id, given := m["id"]
	switch {
	case !given:
		return errors.New("a response without an id")
	case (m["result"] != nil) == (m["error"] != nil):
		return errors.New("a response has either a result or an error")
	case string(id) == "null":
		if m["error"] == nil {
			return errors.New("a result for nobody")
		}
		return c.failure(m["error"])
	}
	methods := c.open[string(id)]
	if len(methods) == 0 {
		return fmt.Errorf("no request waits for an answer with id %s", id)
	}
	if c.open[string(id)] = methods[1:]; len(methods) == 1 {
		delete(c.open, string(id))
	}
	if m["error"] != nil {
		return c.failure(m["error"])
	}
	s, known := c.schema.responses[methods[0]]
	switch {
	case known:
		return c.against(s, m["result"])
	case c.extension(methods[0]):
		return nil
	default:
		return fmt.Errorf("a result for %s, which the schema does not have", methods[0])
	}
}

func (c *Conversation) failure(raw json.RawMessage) error {
	var e struct{ Message string }
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	if e.Message == "" || strings.ContainsAny(e.Message, "\r\n") {
		return errors.New("an error's message is one line")
	}
	return c.against(shape{Schema: c.schema.failure}, raw)
}

func (c *Conversation) against(s shape, raw json.RawMessage) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	return s.check(value, c.words)
}
