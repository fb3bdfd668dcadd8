// Package modelserver is a model endpoint on loopback that does as it is told: no network, no
// account, the same answer every time. Coding agents are pointed at it by their settings for the
// endpoint, and believe that a model answers.
//
//	POST /v1/chat/completions                          OpenAI chat completions
//	POST /v1/responses                                 OpenAI responses
//	POST /v1/messages, /v1/messages/count_tokens       Anthropic messages
//	POST /v1beta/models/NAME:streamGenerateContent     Gemini, also :generateContent and :countTokens
//	GET  /v1/models, /v1beta/models                    the only model, "scripted"
//
// What the model does stands in the user's prompt: [Prompt] writes orders as text, one a line, and
// the server reads them back from the conversation that the agent sends. It keeps no state between
// requests, so a conversation can go on after a restart of anything. The n-th answer after
// the orders carries out the n-th of them: it says something, or calls the tool that the agent offers for
// reading, editing or writing a file, whatever its name and the names of its arguments are; where there is none, the
// one for shell commands. When they are used up, the model says [Done]; where the agent offers no tools, as
// when it asks for a title, [Title].
//
// An agent that takes the server for its proxy as well gets nowhere else, and [Server.Unknown] says where it wanted to go.
//
// Every request is kept as a [Request], so that a test can see what the model was told.
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

// maxRequest bounds a request, in bytes.
const maxRequest = 32 << 20

// Server is a running endpoint. Its methods are safe for concurrent use.
type Server struct {
	url     string
	server  *http.Server
	done    chan error    // what serving ended with
	waiting chan struct{} // taken from by Waiting

	mu       sync.Mutex
	requests []Request
	unknown  []string
}

// Start starts a server on a free port of loopback. Whoever starts one closes it.
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

// Model is the name of the only model. A request may name any.
const Model = "scripted"

// URL is the server's address, such as "http://127.0.0.1:4321": no path, no slash at the end.
func (s *Server) URL() string { return s.url }

// Requests are the requests so far that the model answered, in the order in which they came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Unknown are the requests so far that no endpoint is for, as "METHOD /path", and those to elsewhere that came here
// because the server's address was given to an agent as its proxy, as "METHOD host".
func (s *Server) Unknown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.unknown)
}

// Waiting returns when the model has come to an order to wait, or with the cause of ctx's end. Each of these is told of once.
func (s *Server) Waiting(ctx context.Context) error {
	select {
	case <-s.waiting:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait says nothing until the agent hangs up, which ends ctx.
func (s *Server) wait(ctx context.Context) {
	select {
	case s.waiting <- struct{}{}:
		<-ctx.Done()
	case <-ctx.Done():
	}
}

// Close ends the server, with the requests that are being answered.
func (s *Server) Close() error {
	err := s.server.Close()
	if ended := <-s.done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// A reader understands a body in one format.
type reader func(body []byte, r *Request) error

// A writer answers in that format.
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

// refuse lets an agent go nowhere.
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

// send answers with a JSON value. That the agent went away is no concern of the model's.
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

// data sends an event that has no name.
func (e events) data(v any) { e.named("", v) }

// named sends an event.
func (e events) named(name string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers alone
	}
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", text)
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}

// Kind is what an item of a conversation is.
type Kind string

const (
	// User is a message of the user's.
	User Kind = "user"
	// Said is a message of the model's.
	Said Kind = "said"
	// Call is a tool call of the model's.
	Call Kind = "call"
	// Result is the result of a tool call.
	Result Kind = "result"
)

// Item is a part of a conversation.
type Item struct {
	Kind Kind
	// Text is what was said, the result, or a call's arguments.
	Text string
}

// Request is what an agent asked of the model, in terms that do not depend on the wire format.
type Request struct {
	// Path is the endpoint, such as "/v1/messages".
	Path string
	// Instructions are the system prompt, and whatever else is said to the model above the user.
	Instructions string
	// Items are the conversation so far.
	Items []Item
	// Tools are those on offer.
	Tools []Tool
	// Body is the request as it came.
	Body json.RawMessage

	model  string
	stream bool
}

// Asks reports whether the request is part of a turn, and not a side errand such as a title.
func (r Request) Asks() bool { return len(r.Tools) > 0 }

// Text is all that the model was told, by whomever.
func (r Request) Text() string {
	all := []string{r.Instructions}
	for _, item := range r.Items {
		all = append(all, item.Text)
	}
	return strings.Join(all, "\n")
}

// Of are the texts of one kind, in order.
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

// content is a text, or parts of which some have one, as all formats have it.
type content []part

type part struct {
	Type, Text string
	Content    content         // of an Anthropic tool result
	Input      json.RawMessage // of an Anthropic tool call
}

// UnmarshalJSON reads a string as a single part.
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

// Done is what the model says when it has carried out its orders, or was given none.
const Done = "All orders are carried out."

// Title is what the model says to an agent that offers no tools.
const Title = "Scripted title"

// mark begins a line of a prompt that holds an order.
const mark = "model: "

// Order is one thing for the model to do. [Say], [Wait], [Read], [Edit], [Write] and [Use] make one.
type Order struct {
	// Do is "say", "wait", "read", "edit", "write" or "use".
	Do string `json:"do"`
	// Path is the file, in the form that the tool is to be given.
	Path string `json:"path,omitempty"`
	// Old is the text that an edit replaces.
	Old string `json:"old,omitempty"`
	// Text is what to say, the new text of an edit, or the content to write.
	Text string `json:"text,omitempty"`
	// Tool is the name of the tool to use.
	Tool string `json:"tool,omitempty"`
	// Server is the MCP server whose tool is to be called, "" for the agent's own.
	Server string `json:"server,omitempty"`
}

// By is the order with the tool of an MCP server: agents put the server's name before that of its tool.
func (o Order) By(server string) Order {
	o.Server = server
	return o
}

// Say has the model say a text.
func Say(text string) Order { return Order{Do: "say", Text: text} }

// Read has it call the tool that reads a file.
func Read(path string) Order { return Order{Do: "read", Path: path} }

// Edit has it call the tool that replaces a text in a file.
func Edit(path, old, text string) Order { return Order{Do: "edit", Path: path, Old: old, Text: text} }

// Wait has it say nothing until the agent hangs up, as it does when its turn is cancelled.
func Wait() Order { return Order{Do: "wait"} }

// Write has it call the tool that writes a whole file.
func Write(path, content string) Order { return Order{Do: "write", Path: path, Text: content} }

// Use has it call a tool by its name, with a path if the tool takes one.
func Use(tool, path string) Order { return Order{Do: "use", Tool: tool, Path: path} }

// Prompt is a prompt that begins with some words and has the model carry out orders, one after the other.
func Prompt(words string, orders ...Order) string {
	var b strings.Builder
	b.WriteString(words)
	for _, o := range orders {
		text, err := json.Marshal(o)
		if err != nil {
			panic(err) // strings alone
		}
		b.WriteString("\n" + mark)
		b.Write(text)
	}
	return b.String()
}

// orders are the last orders in a text: the last lines in a row that hold one. An agent may put other text
// before and after them, and an older conversation with its orders before.
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

// act is what the model does next: it says something, waits, or calls a tool.
type act struct {
	say  string
	wait bool
	tool Tool            // without a name to say something
	args json.RawMessage // an object
}

// next decides what the model does by the conversation alone.
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
