// Package modelserver is a scripted model endpoint on the loopback interface. It needs no network
// and no account, and its answers are deterministic. Coding agents use it as their model through
// the settings for the endpoint.
//
//	POST /v1/chat/completions                          OpenAI chat completions
//	POST /v1/responses                                 OpenAI responses
//	POST /v1/messages, /v1/messages/count_tokens       Anthropic messages
//	POST /v1beta/models/NAME:streamGenerateContent     Gemini; also generateContent, countTokens
//	GET  /v1/models, /v1beta/models                    the only model, "scripted"
//
// The user's prompt says what the model does. [Prompt] encodes orders as lines of text, and the
// server decodes them from the conversation that the agent sends. It keeps no state between
// requests, so conversations survive restarts. The n-th answer after the orders executes the n-th
// order: it sends a text, or calls the agent's tool for reading, editing or writing a file,
// whatever the names of the tool and its arguments are, or its tool for shell commands. After the
// last order the model answers [Done]. If the agent offers no tools, as when it asks for a title,
// it answers [Title], unless there is an order for that ([Order.Aside]).
//
// Except in Gemini's format, the model can do more: think, call several tools in one answer
// ([Together]), send a text in pieces, stop early, and fail in many ways ([Order.Failing]). Like
// real servers they reject conversations in which tool calls and results do not match.
//
// The server can also be the agent's HTTP proxy. It rejects all requests to other hosts;
// [Server.Unknown] lists them.
//
// [Server.Requests] returns what the model was sent.
package modelserver

import (
	"bytes"
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
	"time"
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
	rejected []string
	unknown  []string
}

// Start starts a server on a free port of the loopback interface. The caller must close it.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + listener.Addr().String(), done: make(chan error, 1),
		waiting: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.answering(readChat, writeChat))
	mux.HandleFunc("POST /v1/responses", s.answering(readResponses, writeResponses))
	mux.HandleFunc("POST /v1/messages", s.answering(readMessages, writeMessages))
	mux.HandleFunc("POST /v1/messages/count_tokens", fixed(map[string]int{"input_tokens": 1}))
	mux.HandleFunc("POST /v1beta/models/{call}", s.gemini)
	mux.HandleFunc("GET /v1/models", fixed(map[string]any{"object": "list", "data": []any{
		map[string]any{"id": Model, "object": "model", "type": "model", "display_name": "Scripted",
			"owned_by": "nobody"},
	}}))
	mux.HandleFunc("GET /v1beta/models",
		fixed(map[string]any{"models": []any{map[string]string{"name": "models/" + Model}}}))
	mux.HandleFunc("/", s.notFound)
	handle := func(w http.ResponseWriter, asked *http.Request) {
		if asked.Method == http.MethodConnect || asked.URL.IsAbs() {
			s.refuse(w, asked)
			return
		}
		mux.ServeHTTP(w, asked)
	}
	s.server = &http.Server{Handler: http.HandlerFunc(handle)}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// Model is the name of the model. Requests may use any name.
const Model = "scripted"

// URL returns the address of the server without a slash at the end, such as
// "http://127.0.0.1:4321".
func (s *Server) URL() string { return s.url }

// Requests returns the requests that the model has received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Rejected returns why requests so far were rejected.
func (s *Server) Rejected() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rejected)
}

// Unknown returns the requests so far to unknown endpoints, as "METHOD /path", and those to other
// hosts, as "METHOD host".
func (s *Server) Unknown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.unknown)
}

// Waiting waits for the model to execute a [Wait] that no earlier call has returned for. The error
// is the cause of ctx.
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
		r := Request{Path: asked.URL.Path, Header: asked.Header.Clone()}
		body, err := io.ReadAll(http.MaxBytesReader(w, asked.Body, maxRequest))
		if err == nil {
			r.Body = body
			err = read(body, &r)
		}
		if err == nil {
			err = r.checkTools()
		}
		if err != nil {
			s.mu.Lock()
			s.rejected = append(s.rejected, err.Error())
			s.mu.Unlock()
			reject(w, err)
			return
		}
		s.mu.Lock()
		before := 0 // earlier attempts
		for _, earlier := range s.requests {
			if len(earlier.Body) == len(r.Body) && bytes.Equal(earlier.Body,
				r.Body) { // under the race detector, Equal reads all of both
				before++
			}
		}
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		a := r.next()
		if a.wait {
			s.wait(asked.Context())
			return
		}
		if f := a.fault; f != nil && (f.Times == 0 || before < f.Times) {
			if f.Status != 0 {
				f.answer(w)
				return
			}
			w = &failing{ResponseWriter: w, fault: *f, asked: asked.Context(), wait: s.wait}
			defer func() {
				if e := recover(); e != nil && e != errEnd {
					panic(e)
				}
			}()
		}
		write(w, r, a)
	}
}

// reject answers as OpenAI and Anthropic answer a request that is not valid.
func reject(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error",
		"error": map[string]string{"type": "invalid_request_error", "message": err.Error()}})
}

// errEnd ends an answer early.
var errEnd = errors.New("end of the answer")

// failing ends an answer after some events.
type failing struct {
	http.ResponseWriter
	fault Fault
	asked context.Context
	wait  func(context.Context)
}

// event is called before each event.
func (f *failing) event() {
	if f.fault.Events > 0 {
		f.fault.Events--
		return
	}
	f.Flush()
	switch f.fault.Then {
	case "silence":
		f.wait(f.asked)
	case "end":
		panic(errEnd)
	}
	panic(http.ErrAbortHandler)
}

// Flush implements http.Flusher.
func (f *failing) Flush() { f.ResponseWriter.(http.Flusher).Flush() }

// answer sends a whole response.
func (f *Fault) answer(w http.ResponseWriter) {
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Body)
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
	e.text(name, string(text))
}

func (e events) text(name, data string) {
	if f, ok := e.w.(*failing); ok {
		f.event()
	}
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", data)
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
	// Thought is what the model thought, where agents send that back.
	Thought Kind = "thought"
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
	// Header and Body are the original request.
	Header http.Header
	Body   json.RawMessage

	model      string
	stream     bool
	usageAsked bool // whether a chat completion has asked for a last chunk with the usage
}

// Used returns how many tokens the request and its answer count as, as the agent was told.
func (r Request) Used() (input, output int) { return r.usage(r.next()) }

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
	// The rest is Anthropic's.
	ID, Thinking, Signature string
	Input                   json.RawMessage // of a tool call
	ToolUseID               string          `json:"tool_use_id"`
	Content                 content         // of a tool result
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

// Order is an instruction to the model. [Say], [Wait], [Read], [Edit], [Write], [Run], [Use] and
// [Invent] return one, [Think] and [Together] one for all formats but Gemini's.
type Order struct {
	// Do is "say", "wait", "read", "edit", "write", "run", "use", "invent", "think" or "together".
	Do string `json:"do"`
	// Path is the file, as it is passed to the tool.
	Path string `json:"path,omitempty"`
	// Old is the text that an edit replaces.
	Old string `json:"old,omitempty"`
	// Text is the text to say or think, the new text of an edit, the content to write, or the
	// command to run.
	Text string `json:"text,omitempty"`
	// Tool is the name of the tool to use.
	Tool string `json:"tool,omitempty"`
	// Arguments is the JSON object of the tool's arguments; "" means Path and the texts, under the
	// names that the tool has for them.
	Arguments string `json:"arguments,omitempty"`
	// Server is the MCP server whose tool to call; "" means the agent's own tools.
	Server string `json:"server,omitempty"`
	// All are the orders to carry out together.
	All []Order `json:"all,omitempty"`
	// Pieces is the number of deltas in which a text is streamed; 0 means 1.
	Pieces int `json:"pieces,omitempty"`
	// Pace, if not 0, is the time between these, each of which begins with "at ", the time in
	// nanoseconds since 1970, and a space.
	Pace time.Duration `json:"pace,omitempty"`
	// End is why the answer ends: "length", "refusal" or "stop" (at a text that the request names);
	// "" means that the model has said everything.
	End string `json:"end,omitempty"`
	// Fault, if not nil, is what goes wrong with the answer.
	Fault *Fault `json:"fault,omitempty"`
	// IsAside marks the order for requests without tools.
	IsAside bool `json:"aside,omitempty"`
}

// Fault is a failure of the server.
type Fault struct {
	// Times is how often the request fails before it is answered; 0 means always.
	Times int `json:"times,omitempty"`
	// Status, if not 0, is that of a response with Header and Body instead of the answer.
	Status int               `json:"status,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	// Events is how many events of a streamed answer are sent.
	Events int `json:"events,omitempty"`
	// Then is what happens after these: "" cuts the connection, "end" ends the response, and
	// "silence" sends nothing more until the agent closes the connection (see [Server.Waiting]).
	Then string `json:"then,omitempty"`
}

// By returns the order for the tool of an MCP server, whose name agents put before that of the
// tool.
func (o Order) By(server string) Order {
	o.Server = server
	return o
}

// In returns the order with its text streamed in that many deltas.
func (o Order) In(pieces int) Order {
	o.Pieces = pieces
	return o
}

// Ending returns the order with an answer that ends early, because of its "length", with a
// "refusal", or with "tool_calls" although it has none.
func (o Order) Ending(why string) Order {
	o.End = why
	return o
}

// Failing returns the order with an answer that fails.
func (o Order) Failing(f Fault) Order {
	o.Fault = &f
	return o
}

// Aside returns the order for all requests without tools, such as for a title or a summary. It is
// not counted among the others.
func (o Order) Aside() Order {
	o.IsAside = true
	return o
}

// Say orders the model to send a text.
func Say(text string) Order { return Order{Do: "say", Text: text} }

// Think orders the model to think, and to say nothing unless there is more in [Together].
func Think(text string) Order { return Order{Do: "think", Text: text} }

// Together orders the model to carry out several orders in one answer: to think first, to send a
// text, and to call tools.
func Together(orders ...Order) Order { return Order{Do: "together", All: orders} }

// Stamps orders the model to send n deltas, one every pace, which begin with the time; see
// [Order.Pace].
func Stamps(n int, pace time.Duration) Order { return Order{Do: "say", Pieces: n, Pace: pace} }

// Read orders the model to call the tool that reads a file.
func Read(path string) Order { return Order{Do: "read", Path: path} }

// Edit orders the model to call the tool that replaces a text in a file.
func Edit(path, old, text string) Order {
	return Order{Do: "edit", Path: path, Old: old, Text: text}
}

// Wait orders the model to wait until the agent closes the connection, as it does when the turn is
// cancelled.
func Wait() Order { return Order{Do: "wait"} }

// Write orders the model to call the tool that writes a file.
func Write(path, content string) Order { return Order{Do: "write", Path: path, Text: content} }

// Run orders the model to run a shell command.
func Run(command string) Order { return Order{Do: "run", Text: command} }

// Use orders the model to call a tool by name, with a path if the tool takes one.
func Use(tool, path string) Order { return Order{Do: "use", Tool: tool, Path: path} }

// Invent orders the model to call a tool whether there is one or not.
func Invent(tool, arguments string) Order {
	return Order{Do: "invent", Tool: tool, Arguments: arguments}
}

// UseWith orders the model to call a tool by name, with arguments, which should be a JSON object.
func UseWith(tool, arguments string) Order {
	return Order{Do: "use", Tool: tool, Arguments: arguments}
}

// Prompt returns a prompt that begins with words and contains orders, which the model executes one
// after another.
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

// orders returns the orders in the last block of lines with orders. Agents may put other text
// before and after it, and earlier conversations with their orders before it.
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

// act is the next answer of the model, or what it does instead.
type act struct {
	wait    bool
	thought string
	say     string
	pieces  int
	pace    time.Duration
	calls   []call
	end     string // see Order.End
	fault   *Fault
}

// call is a tool call.
type call struct {
	tool Tool
	args string // a JSON object, unless an order says otherwise
}

// says reports whether the answer contains text. There is always something in it.
func (a act) says() bool {
	return a.say != "" || a.pieces > 0 || a.thought == "" && len(a.calls) == 0
}

// deltas calls send for each piece of the text.
func (a act) deltas(send func(piece string)) {
	said, n := []rune(a.say), max(a.pieces, 1)
	next := time.Now()
	for i := range n {
		piece := string(said[len(said)*i/n : len(said)*(i+1)/n])
		if a.pace > 0 {
			time.Sleep(time.Until(next))
			next = next.Add(a.pace)
			piece = fmt.Sprintf("at %d %s", time.Now().UnixNano(), piece)
		}
		send(piece)
	}
}

// one returns the act for a format of which only single actions are supported.
func (a act) one() act {
	if len(a.calls) > 1 || a.thought != "" || len(a.calls) > 0 && a.say != "" || a.end != "" {
		return act{say: "not for Gemini"}
	}
	return a
}

// usage returns how many tokens a request and its answer count as: one for each four bytes.
func (r Request) usage(a act) (input, output int) {
	output = len(a.thought) + len(a.say)
	for _, c := range a.calls {
		output += len(c.args)
	}
	return len(r.Body)/4 + 1, output/4 + 1
}

// next derives the next action from the conversation.
func (r Request) next() act {
	aside := len(r.Tools) == 0
	answers := 0
	for i := len(r.Items) - 1; i >= 0; i-- {
		if r.Items[i].Kind != User {
			if r.beginsAnswer(i) {
				answers++
			}
			continue
		}
		given := slices.DeleteFunc(orders(r.Items[i].Text), func(o Order) bool {
			return o.IsAside != aside
		})
		switch {
		case len(given) == 0:
		case aside:
			return r.carryOut(given[len(given)-1])
		case answers < len(given):
			return r.carryOut(given[answers])
		default:
			return act{say: Done}
		}
	}
	if aside {
		return act{say: Title}
	}
	return act{say: Done}
}

// beginsAnswer reports whether an answer of the model begins with an item. What it says and the
// calls that follow are one answer.
func (r Request) beginsAnswer(i int) bool {
	ofModel := func(k Kind) bool { return k == Thought || k == Said || k == Call }
	return ofModel(r.Items[i].Kind) && (i == 0 || !ofModel(r.Items[i-1].Kind))
}
