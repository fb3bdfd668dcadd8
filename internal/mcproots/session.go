package mcproots

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577); they are served for the servers that there are

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
