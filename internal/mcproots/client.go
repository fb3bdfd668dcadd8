package mcproots

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// modern is the first revision in which roots travel inside results.
const modern = "2026-07-28"

// Options configure a [Client].
type Options struct {
	// SDK are options for the SDK's client: handlers and a logger. Capabilities and MultiRoundTrip are set
	// here. Sampling and elicitation are declared only if their handlers are set.
	SDK mcp.ClientOptions
	// Roots is asked each time a server wants the list. Nil: roots are not declared, and roots/list is unknown (M2).
	// It must be safe for concurrent use.
	Roots func(context.Context) (Snapshot, error)
	// Told hears of each list that a server is given. It must not block.
	Told func(Snapshot)
	// ProbeTimeout is how long a server may take to answer server/discover before it is taken for a legacy one. Default 5 s.
	ProbeTimeout time.Duration
	// MaxRounds is how often one call is repeated because the server asked for something. Default 10.
	MaxRounds int
	// MaxQuestions is how much one result may ask for. Default 100.
	MaxQuestions int
}

// Client is an MCP client that serves roots in their order, in both eras. Use one for each server: a client of the
// SDK tells all its servers one list, one after the other.
type Client struct {
	sdk     *mcp.Client
	options Options
}

// NewClient makes a client that introduces itself as impl.
func NewClient(impl *mcp.Implementation, o Options) *Client {
	if o.MaxRounds == 0 {
		o.MaxRounds = 10
	}
	if o.MaxQuestions == 0 {
		o.MaxQuestions = 100
	}
	if o.ProbeTimeout == 0 {
		o.ProbeTimeout = 5 * time.Second
	}
	if o.SDK.Logger == nil {
		o.SDK.Logger = slog.New(slog.DiscardHandler)
	}
	o.SDK.Capabilities = &mcp.ClientCapabilities{}
	if o.Roots != nil {
		o.SDK.Capabilities.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	o.SDK.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	c := &Client{sdk: mcp.NewClient(impl, &o.SDK), options: o}
	c.sdk.AddReceivingMiddleware(c.receive)
	c.sdk.AddSendingMiddleware(c.send)
	return c
}

// Connect begins a session with a server, as the SDK's Connect does. ctx is for the beginning alone.
func (c *Client) Connect(ctx context.Context, t mcp.Transport, o *mcp.ClientSessionOptions) (*Session, error) {
	sdk, err := guarded(func() (*mcp.ClientSession, error) { return c.sdk.Connect(ctx, t, o) })
	if err != nil {
		return nil, err
	}
	return &Session{ClientSession: sdk, client: c}, nil
}

// receive answers what a server asks. What was not offered is unknown here, rather than left to the SDK, which has other
// codes for some of it, and a handler that a malformed notification makes panic.
func (c *Client) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client could not serve " + method}
			}
		}()
		switch {
		case method == "roots/list" && c.options.Roots != nil:
			return c.list(ctx)
		case c.offers(method):
			return next(ctx, method, req)
		default:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("this client does not offer %s", method)}
		}
	}
}

// offers reports whether the SDK serves a method here. Sampling needs a handler: without one it is unknown (M13).
func (c *Client) offers(method string) bool {
	switch method {
	case "ping", "notifications/cancelled", "notifications/progress", "notifications/message",
		"notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/subscriptions/acknowledged":
		return true
	case "sampling/createMessage":
		return c.options.SDK.CreateMessageHandler != nil || c.options.SDK.CreateMessageWithToolsHandler != nil
	case "elicitation/create", "notifications/elicitation/complete":
		return c.options.SDK.ElicitationHandler != nil
	}
	return false
}

// list is the answer to roots/list.
func (c *Client) list(ctx context.Context) (*mcp.ListRootsResult, error) {
	s, err := c.options.Roots(ctx)
	if err != nil {
		c.options.SDK.Logger.Warn("the roots cannot be listed for an MCP server", "error", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the roots cannot be listed"}
	}
	result := &mcp.ListRootsResult{Roots: make([]*mcp.Root, 0, s.Len())}
	for _, r := range s.All() {
		result.Roots = append(result.Roots, &mcp.Root{URI: r.URI, Name: r.Name})
	}
	if c.options.Told != nil {
		c.options.Told(s)
	}
	return result, nil
}

// send declares roots to a modern server as that revision does, without listChanged, and does not wait
// for ever to learn whether a server is one.
func (c *Client) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if params := req.GetParams(); params != nil {
			if meta := params.GetMeta(); c.options.Roots != nil && meta[mcp.MetaKeyClientCapabilities] != nil {
				meta[mcp.MetaKeyClientCapabilities] = modernCapabilities{}
			}
		}
		if method == "server/discover" {
			probe, cancel := context.WithTimeout(ctx, c.options.ProbeTimeout)
			defer cancel()
			ctx = probe
		}
		return next(ctx, method, req)
	}
}

// modernCapabilities are those of a client that offers roots and nothing else.
type modernCapabilities struct {
	Roots struct{} `json:"roots"`
}

// guarded turns a panic in the SDK, which some malformed answers of servers cause, into an error.
func guarded[T any](call func() (T, error)) (_ T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the server's answer cannot be read: %v", p)
		}
	}()
	return call()
}

// Session is a session with one server. Its CallTool, GetPrompt and ReadResource answer a modern server's
// questions for the roots; they take the place of the SDK's, which would answer with its own sorted list.
type Session struct {
	*mcp.ClientSession
	client *Client
}

// Modern reports whether the server speaks 2026-07-28 or later: it asks for roots inside results, and there is no
// way to tell it of a change.
func (s *Session) Modern() bool {
	r := s.InitializeResult()
	return r != nil && r.ProtocolVersion >= modern
}

// Announce sends a legacy server one notifications/roots/list_changed. A modern one asks anew in each call. It
// blocks while the server does not read, at most 10 s.
func (s *Session) Announce() {
	if s.client.options.Roots == nil || s.Modern() {
		return
	}
	// The SDK notifies on every addition. What is added is never served.
	s.client.sdk.AddRoots(&mcp.Root{URI: "file:///"})
}

// CallTool calls a tool. It owns p and its Meta.
func (s *Session) CallTool(ctx context.Context, p *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	return rounds(ctx, s, func(a answers) (*mcp.CallToolResult, question, error) {
		p.InputResponses, p.RequestState = a.responses, a.state
		r, err := s.ClientSession.CallTool(ctx, p)
		if err != nil {
			return nil, question{}, err
		}
		return r, question{r.NeedsInput(), r.InputRequests, r.RequestState}, nil
	})
}

// GetPrompt gets a prompt. It owns p and its Meta.
func (s *Session) GetPrompt(ctx context.Context, p *mcp.GetPromptParams) (*mcp.GetPromptResult, error) {
	return rounds(ctx, s, func(a answers) (*mcp.GetPromptResult, question, error) {
		p.InputResponses, p.RequestState = a.responses, a.state
		r, err := s.ClientSession.GetPrompt(ctx, p)
		if err != nil {
			return nil, question{}, err
		}
		return r, question{r.NeedsInput(), r.InputRequests, r.RequestState}, nil
	})
}

// ReadResource reads a resource. It owns p and its Meta.
func (s *Session) ReadResource(ctx context.Context, p *mcp.ReadResourceParams) (*mcp.ReadResourceResult, error) {
	return rounds(ctx, s, func(a answers) (*mcp.ReadResourceResult, question, error) {
		p.InputResponses, p.RequestState = a.responses, a.state
		r, err := s.ClientSession.ReadResource(ctx, p)
		if err != nil {
			return nil, question{}, err
		}
		return r, question{r.NeedsInput(), r.InputRequests, r.RequestState}, nil
	})
}

// question is what a result asks for before it can be complete.
type question struct {
	asked    bool
	requests mcp.InputRequestMap
	state    string
}

// answers go with the repeated call.
type answers struct {
	responses mcp.InputResponseMap
	state     string
}

// RoundsError: a server that kept asking instead of answering.
type RoundsError struct {
	// Rounds is how often it was called.
	Rounds int
}

func (e *RoundsError) Error() string {
	return fmt.Sprintf("the server asked for more input %d times and gave no result", e.Rounds)
}

// QuestionsError: a result that asks more than is answered at once.
type QuestionsError struct{ Questions, Limit int }

func (e *QuestionsError) Error() string {
	return fmt.Sprintf("the server asked %d questions in one result, and %d are the limit", e.Questions, e.Limit)
}

// NotOfferedError: a server that asked, in a result, for what it was not offered.
type NotOfferedError struct {
	// What is the method it asked for.
	What string
}

func (e *NotOfferedError) Error() string {
	return fmt.Sprintf("the server asked for %s, which it was not offered", e.What)
}

// rounds repeats a call until its result is complete.
func rounds[R any](ctx context.Context, s *Session, call func(answers) (R, question, error)) (R, error) {
	var none R
	var a answers
	for n := 1; ; n++ {
		var q question
		r, err := guarded(func() (r R, err error) {
			r, q, err = call(a)
			return r, err
		})
		switch {
		case err != nil:
			return none, err
		case !q.asked && len(q.requests) == 0:
			return r, nil
		case n >= s.client.options.MaxRounds:
			return none, &RoundsError{Rounds: n}
		}
		if len(q.requests) == 0 { // the server is busy
			if err := pause(ctx, time.Duration(n)*busyPause); err != nil {
				return none, err
			}
		}
		if a, err = s.answer(ctx, q); err != nil {
			return none, err
		}
	}
}

// busyPause is how long a server that is busy is left alone after its first refusal.
const busyPause = 50 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer answers a question for roots, and no other.
func (s *Session) answer(ctx context.Context, q question) (answers, error) {
	if n, limit := len(q.requests), s.client.options.MaxQuestions; n > limit {
		return answers{}, &QuestionsError{Questions: n, Limit: limit}
	}
	a := answers{responses: make(mcp.InputResponseMap, len(q.requests)), state: q.state}
	var list *mcp.ListRootsResult
	for key, request := range q.requests {
		switch request.(type) {
		case *mcp.ListRootsParams:
			if s.client.options.Roots == nil {
				return answers{}, &NotOfferedError{What: "roots/list"}
			}
			if list == nil {
				var err error
				if list, err = s.client.list(ctx); err != nil {
					return answers{}, err
				}
			}
			a.responses[key] = list
		case *mcp.ElicitParams:
			return answers{}, &NotOfferedError{What: "elicitation/create"}
		default:
			return answers{}, &NotOfferedError{What: "sampling/createMessage"}
		}
	}
	return a, nil
}

// Mend makes a server's message readable for the SDK, which cannot read a question for roots that has no
// params, as the official TypeScript server writes it, and panics at one that is null. Transports pass what they
// receive through it. Other messages are returned as they are, and message is never changed.
func Mend(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"inputRequests"`)) {
		return message
	}
	var envelope map[string]json.RawMessage
	var result map[string]json.RawMessage
	var questions map[string]map[string]json.RawMessage
	if json.Unmarshal(message, &envelope) != nil || json.Unmarshal(envelope["result"], &result) != nil ||
		json.Unmarshal(result["inputRequests"], &questions) != nil {
		return message
	}
	for key, q := range questions {
		if q == nil {
			q = map[string]json.RawMessage{}
			questions[key] = q
		}
		if p := q["params"]; len(p) == 0 || string(p) == "null" {
			q["params"] = json.RawMessage("{}")
		}
	}
	var errs [3]error
	result["inputRequests"], errs[0] = json.Marshal(questions)
	envelope["result"], errs[1] = json.Marshal(result)
	mended, err := json.Marshal(envelope)
	if errs[0] != nil || errs[1] != nil || err != nil {
		return message
	}
	return mended
}
