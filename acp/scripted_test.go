package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// scripted is a runtime that does what the prompt says:
//
//	say TEXT        answers TEXT
//	count N         answers with N updates
//	wait            waits for the end of the turn
//	mute            tries to say something once its turn has ended
//	drip            answers until the end of the turn
//	stubborn        ignores the end of the turn, until release is closed
//	panic           panics
//	fail            answers with an error
//	call METHOD P   calls the client, and answers with what came of it
//	title TEXT      sets the session's title
//	tool            leaves a tool call open
//	state TEXT      saves its state
//	roots           answers with its roots
//
// and what actOnTools does.
type scripted struct {
	kind    string // default "scripted"
	release chan struct{}
	refuse  error         // of Open
	hold    chan struct{} // if set, a load or resume opens once it is closed

	mcp     backend.MCPOwner
	started chan<- error                           // if set, is given what came of a start
	opened  func(backend.Activation, backend.Host) // if set, is called when a session opens

	mu     sync.Mutex
	events []string // what the runtime was asked, in order
}

func (r *scripted) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *scripted) noted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

func (r *scripted) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	if r.kind == "" {
		r.kind = "scripted"
	}
	return backend.Info{Kind: r.kind, MCP: r.mcp, Initialize: backend.Raw(`{"agentCapabilities":{"promptCapabilities":{"image":true},"sessionCapabilities":{"fork":{},"x":{}}},"x":1}`)}, nil
}

func (r *scripted) Call(_ context.Context, method string, params backend.Raw) backend.Work {
	if method != "_echo" {
		return nil
	}
	return func() (backend.Raw, error) { return params, nil }
}

func (r *scripted) Notify(_ context.Context, method string, params backend.Raw) {
	r.note("notify %s %s", method, params)
}

func (r *scripted) Close(context.Context) error { return nil }

func (r *scripted) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	if r.refuse != nil {
		return nil, backend.Opened{}, r.refuse
	}
	r.note("open %s %s state=%s", a.Cause, h.Workspace().Roots(), a.State)
	if r.opened != nil {
		r.opened(a, h)
	}
	if r.hold != nil && a.Cause != backend.New {
		<-r.hold
	}
	err := h.Update(ctx, backend.Update(`{"update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}`))
	return &scriptedSession{runtime: r, host: h}, backend.Opened{Result: backend.Raw(`{"_meta":{"opened":true}}`)}, err
}

type scriptedSession struct {
	runtime *scripted
	host    backend.Host
}

func (s *scriptedSession) Call(_ context.Context, method string, params backend.Raw) backend.Work {
	s.runtime.note("call %s %s", method, params)
	switch method {
	case "session/set_mode":
		return func() (backend.Raw, error) { return nil, nil }
	case "_save":
		return func() (backend.Raw, error) { return nil, s.host.SaveState(context.Background(), params) }
	default:
		return nil
	}
}

func (s *scriptedSession) Notify(_ context.Context, method string, params backend.Raw) {
	s.runtime.note("session notify %s %s", method, params)
}

func (s *scriptedSession) Cancel(params backend.Raw) { s.runtime.note("cancel %s", params) }

func (s *scriptedSession) Close(context.Context) error {
	s.runtime.note("close")
	return nil
}

func (s *scriptedSession) Prompt(ctx context.Context, params backend.Raw, u backend.Updates) backend.Work {
	var p struct{ Prompt []struct{ Text string } }
	if err := json.Unmarshal(params, &p); err != nil || len(p.Prompt) == 0 {
		return func() (backend.Raw, error) { return endTurn, err }
	}
	s.runtime.note("prompt %s", p.Prompt[0].Text)
	word, rest, _ := strings.Cut(p.Prompt[0].Text, " ")
	return func() (backend.Raw, error) { return s.act(ctx, word, rest, u) }
}

var endTurn = backend.Raw(`{"stopReason":"end_turn"}`)

func say(text string) backend.Update {
	return backend.Update(`{"update":{"sessionUpdate":"agent_message_chunk","content":` + encode(map[string]string{"type": "text", "text": text}) + `}}`)
}

func (s *scriptedSession) act(ctx context.Context, word, rest string, u backend.Updates) (backend.Raw, error) {
	switch word {
	case "say":
		return endTurn, u.Update(ctx, say(rest))
	case "count":
		var n int
		_, err := fmt.Sscan(rest, &n)
		for i := 0; i < n && err == nil; i++ {
			err = u.Update(ctx, say(fmt.Sprint(i)))
		}
		return endTurn, err
	case "wait":
		if err := u.Update(ctx, say("waiting")); err != nil {
			return nil, err
		}
		<-ctx.Done()
		_ = u.Update(context.WithoutCancel(ctx), say("last words"))
		return nil, context.Cause(ctx)
	case "mute":
		<-ctx.Done()
		err := u.Update(ctx, say("after the end"))
		s.runtime.note("update after the end: %v", err)
		return nil, err
	case "drip":
		for {
			if err := u.Update(ctx, say("drip")); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Millisecond):
			}
		}
	case "stubborn":
		if err := u.Update(ctx, say("stubborn")); err != nil {
			return nil, err
		}
		<-s.runtime.release
		err := u.Update(context.WithoutCancel(ctx), say("too late"))
		s.runtime.note("late update: %v", err)
		return endTurn, nil
	case "panic":
		panic("scripted")
	case "fail":
		return nil, errors.New("scripted failure")
	case "call":
		method, params, _ := strings.Cut(rest, " ")
		result, err := s.host.Call(ctx, method, backend.Raw(params))()
		return endTurn, u.Update(ctx, say(fmt.Sprintf("%s %v", result, err)))
	case "title":
		return endTurn, u.Update(ctx, backend.Update(`{"update":{"sessionUpdate":"session_info_update","title":`+encode(rest)+`}}`))
	case "tool":
		return endTurn, u.Update(ctx, backend.Update(`{"update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"T","status":"in_progress"}}`))
	case "state":
		return endTurn, s.host.SaveState(ctx, []byte(rest))
	case "roots":
		return endTurn, u.Update(ctx, say(s.host.Workspace().Roots().String()))
	default:
		return s.actOnTools(ctx, word, rest, u)
	}
}
