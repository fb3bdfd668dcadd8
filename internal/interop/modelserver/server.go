// Package modelserver is a scripted model endpoint on the loopback interface. It needs no network and no account, and its answers are
// deterministic. Coding agents use it as their model through the settings for the endpoint.
//
//	POST /v1/chat/completions                          OpenAI chat completions
//	POST /v1/responses                                 OpenAI responses
//	POST /v1/messages, /v1/messages/count_tokens       Anthropic messages
//	POST /v1beta/models/NAME:streamGenerateContent     Gemini, also :generateContent and :countTokens
//	GET  /v1/models, /v1beta/models                    the only model, "scripted"
//
// The user's prompt says what the model does. [Prompt] encodes orders as lines of text, and the server decodes them from the conversation that
// the agent sends. It keeps no state between requests, so conversations survive restarts. The n-th answer after the orders
// executes the n-th order: it sends a text, or calls the agent's tool for reading, editing or writing a file, whatever the names of the
// tool and its arguments are, or its tool for shell commands. After the last order the model answers [Done]. If the agent offers no
// tools, as when it asks for a title, it answers [Title].
//
// The server can also be the agent's HTTP proxy. It rejects all requests to other hosts; [Server.Unknown] lists them.
//
// [Server.Requests] returns what the model was sent.
package modelserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// maxRequest is the longest request, in bytes.
const maxRequest = 32 << 20

// Server is a running endpoint. Its methods are safe for concurrent use.
type Server struct {
	url     string
	server  *http.Server
	done    chan error    // result of http.Server.Serve
	waiting chan struct{} // received from by Waiting

	mu       sync.Mutex
	requests []Request
	unknown  []string
}

// Start starts a server on a free port of the loopback interface. The caller must close it.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + listener.Addr().String(), done: make(chan error, 1), waiting: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.answering(readChat, writeChat))
	mux.HandleFunc("POST /v1/responses", s.answering(readResponses, writeResponses))
	mux.HandleFunc("POST /v1/messages", s.answering(readMessages, writeMessages))
	mux.HandleFunc("POST /v1/messages/count_tokens", fixed(map[string]int{"input_tokens": 1}))
	mux.HandleFunc("POST /v1beta/models/{call}", s.gemini)
	mux.HandleFunc("GET /v1/models", fixed(map[string]any{"object": "list", "data": []any{
		map[string]any{"id": Model, "object": "model", "type": "model", "display_name": "Scripted", "owned_by": "nobody"},
	}}))
	mux.HandleFunc("GET /v1beta/models", fixed(map[string]any{"models": []any{map[string]string{"name": "models/" + Model}}}))
	mux.HandleFunc("/", s.notFound)
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) {
		if asked.Method == http.MethodConnect || asked.URL.IsAbs() {
			s.refuse(w, asked)
			return
		}
		mux.ServeHTTP(w, asked)
	})}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// Model is the name of the model. Requests may use any name.
const Model = "scripted"

// URL returns the address of the server without a slash at the end, such as "http://127.0.0.1:4321".
func (s *Server) URL() string { return s.url }

// Requests returns the requests that the model has received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Unknown returns the requests so far to unknown endpoints, as "METHOD /path", and those to other hosts, as "METHOD host".
func (s *Server) Unknown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.unknown)
}

// Waiting waits for the model to execute a [Wait] that no earlier call has returned for. The error is the cause of ctx.
func (s *Server) Waiting(ctx context.Context) error {
	select {
	case <-s.waiting:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits until the agent closes the connection, which ends ctx.
func (s *Server) wait(ctx context.Context) {
	select {
	case s.waiting <- struct{}{}:
		<-ctx.Done()
	case <-ctx.Done():
	}
}

// Close closes the server and all connections.
func (s *Server) Close() error {
	err := s.server.Close()
	if ended := <-s.done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// reader decodes a request in one wire format.
type reader func(body []byte, r *Request) error

// writer encodes an answer in that format.
type writer func(w http.ResponseWriter, r Request, a act)

func (s *Server) answering(read reader, write writer) http.HandlerFunc {
	return func(w http.ResponseWriter, asked *http.Request) {
		r := Request{Path: asked.URL.Path}
		body, err := io.ReadAll(http.MaxBytesReader(w, asked.Body, maxRequest))
		if err == nil {
			r.Body = body
			err = read(body, &r)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		a := r.next()
		if a.wait {
			s.wait(asked.Context())
			return
		}
		write(w, r, a)
	}
}

func (s *Server) gemini(w http.ResponseWriter, asked *http.Request) {
	switch _, method, _ := strings.Cut(asked.PathValue("call"), ":"); method {
	case "streamGenerateContent":
		s.answering(readGemini, streamGemini)(w, asked)
	case "generateContent":
		s.answering(readGemini, writeGemini)(w, asked)
	case "countTokens":
		send(w, map[string]int{"totalTokens": 1})
	default:
		s.notFound(w, asked)
	}
}

// refuse rejects a request to another host.
func (s *Server) refuse(w http.ResponseWriter, asked *http.Request) {
	s.mu.Lock()
	s.unknown = append(s.unknown, asked.Method+" "+asked.Host)
	s.mu.Unlock()
	http.Error(w, "there is no network here", http.StatusForbidden)
}

func (s *Server) notFound(w http.ResponseWriter, asked *http.Request) {
	s.mu.Lock()
	s.unknown = append(s.unknown, asked.Method+" "+asked.URL.Path)
	s.mu.Unlock()
	http.NotFound(w, asked)
}

func fixed(answer any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, answer) }
}

// send answers with a JSON value. It ignores errors, which mean that the agent has disconnected.
func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// events answers with server-sent events.
type events struct{ w http.ResponseWriter }

func stream(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream")
	return events{w}
}

// data sends an event without a name.
func (e events) data(v any) { e.named("", v) }

// named sends an event.
func (e events) named(name string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: maps of strings and numbers
	}
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", text)
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}

// Kind is the kind of an item of a conversation.
type Kind string

const (
	// User is a message of the user.
	User Kind = "user"
	// Said is a message of the model.
	Said Kind = "said"
	// Call is a tool call of the model.
	Call Kind = "call"
	// Result is the result of a tool call.
	Result Kind = "result"
)

// Item is a part of a conversation.
type Item struct {
	Kind Kind
	// Text is the message, the result, or the arguments of a call.
	Text string
}

// Request is a request to the model, independent of the wire format.
type Request struct {
	// Path is the endpoint, such as "/v1/messages".
	Path string
	// Instructions are the system prompt and developer messages.
	Instructions string
	// Items are the conversation so far.
	Items []Item
	// Tools are the tools that the agent offers.
	Tools []Tool
	// Body is the original request.
	Body json.RawMessage

	model  string
	stream bool
}

// Asks reports whether the request is part of a turn rather than, for example, for a title.
func (r Request) Asks() bool { return len(r.Tools) > 0 }

// Text returns the instructions and all items.
func (r Request) Text() string {
	all := []string{r.Instructions}
	for _, item := range r.Items {
		all = append(all, item.Text)
	}
	return strings.Join(all, "\n")
}

// Of returns the texts of one kind.
func (r Request) Of(k Kind) []string {
	var all []string
	for _, item := range r.Items {
		if item.Kind == k {
			all = append(all, item.Text)
		}
	}
	return all
}

// add appends an item, unless it is empty.
func (r *Request) add(k Kind, text string) {
	if text != "" {
		r.Items = append(r.Items, Item{Kind: k, Text: text})
	}
}

// instruct appends to the instructions.
func (r *Request) instruct(text string) {
	if r.Instructions != "" && text != "" {
		r.Instructions += "\n"
	}
	r.Instructions += text
}

// content is a text or a list of parts, as in all wire formats.
type content []part

type part struct {
	Type, Text string
	Content    content         // of an Anthropic tool result
	Input      json.RawMessage // of an Anthropic tool call
}

// UnmarshalJSON decodes a string as a single part.
func (c *content) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) == nil {
		*c = content{{Type: "text", Text: s}}
		return nil
	}
	var parts []part
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	*c = parts
	return nil
}

func (c content) text() string {
	var all []string
	for _, p := range c {
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// Done is the answer after the last order.
const Done = "All orders are carried out."

// Title is the answer to a request without tools.
const Title = "Scripted title"

// mark is the prefix of a line with an order.
const mark = "model: "

// Order is an instruction to the model. [Say], [Wait], [Read], [Edit], [Write], [Run] and [Use] return one.
type Order struct {
	// Do is "say", "wait", "read", "edit", "write", "run" or "use".
	Do string `json:"do"`
	// Path is the file, as it is passed to the tool.
	Path string `json:"path,omitempty"`
	// Old is the text that an edit replaces.
	Old string `json:"old,omitempty"`
	// Text is the text to say, the new text of an edit, the content to write, or the command to run.
	Text string `json:"text,omitempty"`
	// Tool is the name of the tool to use.
	Tool string `json:"tool,omitempty"`
	// Arguments is the JSON object of the tool's arguments; "" means Path and the texts, under the names that the tool has for them.
	Arguments string `json:"arguments,omitempty"`
	// Server is the MCP server whose tool to call; "" means the agent's own tools.
	Server string `json:"server,omitempty"`
}

// By returns the order for the tool of an MCP server, whose name agents put before that of the tool.
func (o Order) By(server string) Order {
	o.Server = server
	return o
}

// Say orders the model to send a text.
func Say(text string) Order { return Order{Do: "say", Text: text} }

// Read orders the model to call the tool that reads a file.
func Read(path string) Order { return Order{Do: "read", Path: path} }

// Edit orders the model to call the tool that replaces a text in a file.
func Edit(path, old, text string) Order { return Order{Do: "edit", Path: path, Old: old, Text: text} }

// Wait orders the model to wait until the agent closes the connection, as it does when the turn is cancelled.
func Wait() Order { return Order{Do: "wait"} }

// Write orders the model to call the tool that writes a file.
func Write(path, content string) Order { return Order{Do: "write", Path: path, Text: content} }

// Run orders the model to run a shell command.
func Run(command string) Order { return Order{Do: "run", Text: command} }

// Use orders the model to call a tool by name, with a path if the tool takes one.
func Use(tool, path string) Order { return Order{Do: "use", Tool: tool, Path: path} }

// UseWith orders the model to call a tool by name, with a JSON object of arguments.
func UseWith(tool, arguments string) Order { return Order{Do: "use", Tool: tool, Arguments: arguments} }

// Prompt returns a prompt that begins with words and contains orders, which the model executes one after another.
func Prompt(words string, orders ...Order) string {
	var b strings.Builder
	b.WriteString(words)
	for _, o := range orders {
		text, err := json.Marshal(o)
		if err != nil {
			panic(err) // cannot happen: strings only
		}
		b.WriteString("\n" + mark)
		b.Write(text)
	}
	return b.String()
}

// orders returns the orders in the last block of lines with orders. Agents may put other text before and after it, and earlier conversations
// with their orders before it.
func orders(text string) []Order {
	var found []Order
	inRow := false
	for line := range strings.Lines(text) {
		var o Order
		rest, marked := strings.CutPrefix(strings.TrimSpace(line), mark)
		if !marked || json.Unmarshal([]byte(rest), &o) != nil {
			inRow = false
			continue
		}
		if !inRow {
			found = nil
		}
		found, inRow = append(found, o), true
	}
	return found
}

// act is the next action of the model: it sends a text, waits, or calls a tool.
type act struct {
	say  string
	wait bool
	tool Tool            // zero to send a text
	args json.RawMessage // a JSON object
}

// next derives the next action from the conversation.
func (r Request) next() act {
	if len(r.Tools) == 0 {
		return act{say: Title}
	}
	done := 0
	for i := len(r.Items) - 1; i >= 0; i-- {
		item := r.Items[i]
		if item.Kind == Result || item.Kind == Said {
			done++
		}
		if item.Kind != User {
			continue
		}
		if given := orders(item.Text); len(given) > 0 {
			if done >= len(given) {
				break
			}
			return r.carryOut(given[done])
		}
	}
	return act{say: Done}
}
