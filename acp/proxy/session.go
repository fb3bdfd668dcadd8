package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/strict"
	"github.com/acp-agent/acp-agent/acp/wire"
)

// session is a session of the child's.
type session struct {
	agent *agent
	host  runtime.Host
	id    runtime.Raw // the child's, as it sent it
	key   string      // the same, decoded

	order sync.Mutex // held while a message of the child's is handed over

	mu           sync.Mutex
	introduction string // what the next prompt begins with, "" for nothing
	turn         *turn  // the latest one, nil if it is over and was answered
}

// newSession asks the child for a session.
func (a *agent) newSession(ctx context.Context, params runtime.Raw, h runtime.Host) (_ runtime.Session, opened runtime.Opened, err error) {
	params, others, err := rootsFor(a.info, params)
	if err != nil {
		return nil, runtime.Opened{}, err
	}
	if others.Len() > 0 {
		a.log.Warn("the agent does not support additional directories: it is told of them in the first prompt",
			"agent", a.info.Name, "directories", others.Strings())
	}
	a.routes.begin()
	defer func() {
		for _, m := range a.routes.end() {
			a.refuse(m, errUnknownSession)
		}
	}()
	result, err := a.call(ctx, string(runtime.New), params)()
	if err != nil {
		return nil, runtime.Opened{}, err
	}
	id, result, err := strict.Take(result, "sessionId")
	s := &session{agent: a, host: h, id: id, introduction: introduction(others)}
	if err != nil || json.Unmarshal(id, &s.key) != nil || s.key == "" {
		return nil, runtime.Opened{}, errors.New("the agent answered session/new without a session id")
	}
	if err := h.SaveState(ctx, []byte(s.key)); err != nil {
		return nil, runtime.Opened{}, err
	}
	if err := s.attach(); err != nil {
		return nil, runtime.Opened{}, err
	}
	return s, runtime.Opened{Result: result}, nil
}

// attach has the child's messages come to s, those first that were held.
func (s *session) attach() error {
	s.order.Lock()
	defer s.order.Unlock()
	held, err := s.agent.routes.attach(s.key, s)
	for _, m := range held {
		s.hand(m)
	}
	return err
}

// deliver hands over a message of the child's.
func (s *session) deliver(m message) {
	s.order.Lock()
	defer s.order.Unlock()
	s.hand(m)
}

func (s *session) hand(m message) {
	switch {
	case m.method == updateMethod:
		err := s.update(m.ctx, m.params)
		if m.answer != nil {
			m.answer <- failed(err)
		} else if err != nil {
			s.agent.dropped(m.method, err)
		}
	case m.answer != nil:
		m.answer <- s.host.Call(m.ctx, m.method, m.params)
	default:
		if err := s.host.Notify(m.ctx, m.method, m.params); err != nil {
			s.agent.dropped(m.method, err)
		}
	}
}

// update shows the client an update, in the turn if there is one. What comes after the end of a turn that
// was cut short is still of that turn, and comes too late (W6).
func (s *session) update(ctx context.Context, u runtime.Update) error {
	s.mu.Lock()
	t := s.turn
	s.mu.Unlock()
	if t == nil {
		return s.host.Update(ctx, u)
	}
	err := t.updates.Update(ctx, u)
	if errors.Is(err, runtime.ErrTurnOver) && !t.cutShort() {
		return s.host.Update(ctx, u)
	}
	return err
}

// Call passes a request on.
func (s *session) Call(ctx context.Context, method string, params runtime.Raw) runtime.Work {
	params, err := s.named(params)
	if err != nil {
		return failed(err)
	}
	return s.agent.call(ctx, method, params)
}

// Notify passes a notification on.
func (s *session) Notify(_ context.Context, method string, params runtime.Raw) {
	params, err := s.named(params)
	if err != nil {
		s.agent.log.Warn("a notification has params that are not an object", "method", method)
		return
	}
	s.agent.post(method, params)
}

// named is params with the child's id for the session.
func (s *session) named(params runtime.Raw) (runtime.Raw, error) {
	return strict.Put(params, "sessionId", s.id)
}

// codeNotFound is the error of a session that is not there.
const codeNotFound = -32002

// Close closes the session in the child, if that can be said to it.
func (s *session) Close(ctx context.Context) error {
	defer s.agent.routes.detach(s.key)
	if !s.agent.info.Close {
		return nil
	}
	_, err := s.Call(ctx, "session/close", nil)()
	var (
		ended   *EndedError
		unknown *wire.Error
	)
	if errors.As(err, &ended) || errors.As(err, &unknown) && unknown.Code == codeNotFound {
		return nil // it is closed then
	}
	return err
}
