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
