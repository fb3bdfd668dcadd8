package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// link is a session of the child's. Two activations have it in common while one replaces the other: what the
// child says goes to its owner, and it lasts until the last of them has left.
type link struct {
	agent *agent
	id    backend.Raw // the child's, as it sent it
	key   string      // the same, decoded

	order  sync.Mutex // held while a message of the child's is handed over
	behind barrier

	mu       sync.Mutex
	users    []*session // the latest last
	owner    *session
	asked    *session    // whose lifecycle request for it was the latest
	turn     *turn       // the one whose prompt the child has not answered, nil if there is none
	result   backend.Raw // of the lifecycle request that opened it
	settings settings
}

func newLink(a *agent, id backend.Raw) *link {
	return &link{agent: a, id: id, key: sessionKey(id)}
}

// join makes s a user.
func (l *link) join(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users = append(l.users, s)
	if l.owner == nil {
		l.owner, l.asked = s, s
	}
}

// ask says that the child is sent a lifecycle request of s, which is a user.
func (l *link) ask(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = s
}

// own has the child's messages go to s, which is a user.
func (l *link) own(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owner = s
}

// remove takes a user off. It returns how many are left, and the one before s if s had asked for something else since.
func (l *link) remove(s *session) (left int, before *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.users, s)
	if at >= 0 {
		l.users = slices.Delete(l.users, at, at+1)
	}
	if left = len(l.users); left == 0 {
		return 0, nil
	}
	last := l.users[left-1]
	if l.owner == s {
		l.owner = last
	}
	if l.asked == s && at == left {
		l.asked, before = last, last
	}
	return left, before
}

// leave undoes join. After the last user the child's session is closed.
func (l *link) leave(ctx context.Context, s *session) error {
	left, before := l.remove(s)
	if before != nil {
		before.restore(ctx, l, s)
	}
	if left > 0 {
		return nil
	}
	defer l.agent.routes.detach(l.key)
	return errors.Join(l.agent.closeSession(ctx, l.id), l.agent.release(ctx))
}

// quit takes off a user for whom the child's session could not be opened after all, and who keeps a hold on the
// child. It returns what remove does.
func (l *link) quit(s *session) (left int, before *session) {
	left, before = l.remove(s)
	if left > 0 {
		l.agent.hold()
	} else {
		l.agent.routes.detach(l.key)
	}
	return left, before
}

// alive reports whether the child is there to talk to.
func (l *link) alive() bool { return !l.agent.hasEnded() }

// attach has the child's messages come here, those first that were held.
func (l *link) attach() error {
	l.order.Lock()
	defer l.order.Unlock()
	held, err := l.agent.routes.attach(l.key, l)
	for _, m := range held {
		l.hand(m)
	}
	return err
}

// deliver hands over a message of the child's.
func (l *link) deliver(m message) {
	l.order.Lock()
	defer l.order.Unlock()
	l.behind.wait(m.ctx)
	l.hand(m)
}

func (l *link) hand(m message) {
	l.mu.Lock()
	s, t := l.owner, l.turn
	l.mu.Unlock()
	if s == nil {
		l.agent.refuse(m, errUnknownSession)
		return
	}
	switch {
	case m.method == updateMethod:
		if s.isOpen() {
			l.settings.see(m.params)
		}
		err := s.update(m.ctx, t, m.params)
		if m.answer != nil {
			m.answer <- failed(err)
		} else if err != nil {
			l.agent.dropped(m.method, err)
		}
	case m.answer != nil:
		m.answer <- s.host.Call(m.ctx, m.method, m.params)
	default:
		if err := s.host.Notify(m.ctx, m.method, m.params); err != nil {
			l.agent.dropped(m.method, err)
		}
	}
}

// call passes a request of the client's on. What the child sends behind its answer follows ours.
func (l *link) call(ctx context.Context, method string, params backend.Raw) backend.Work {
	named, err := l.named(params)
	if err != nil {
		return failed(err)
	}
	return l.agent.ask(ctx, method, named, func(result backend.Raw, err error) {
		if err == nil {
			l.settings.set(method, params, result)
		}
		l.behind.add(jsonrpc.Answered(ctx))
	})
}

// choose makes a choice that was made before in the place of this session of the child's. The client's request in
// whose course that happens is not answered by it.
func (l *link) choose(ctx context.Context, c choice) error {
	named, err := l.named(c.params)
	if err != nil {
		return err
	}
	result, err := l.agent.call(ctx, c.method, named)()
	if err == nil {
		l.settings.set(c.method, c.params, result)
	}
	return err
}

// named is params with the child's id for the session.
func (l *link) named(params backend.Raw) (backend.Raw, error) {
	return strictjson.Put(params, "sessionId", l.id)
}

// beginTurn makes t the turn that the child's updates are of.
func (l *link) beginTurn(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn = t
}

// endTurn says that the child has answered t's prompt.
func (l *link) endTurn(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == t {
		l.turn = nil
	}
}

// open takes the result of the lifecycle request that opened the child's session.
func (l *link) open(result backend.Raw) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.result = result
}

func (l *link) opened() backend.Raw {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.result
}

const (
	setModeMethod   = "session/set_mode"
	setOptionMethod = "session/set_config_option"
	setModelMethod  = "session/set_model"
)

// settings are what the user has chosen in a child's session: a child that is started anew is told again, so
// that nobody goes on in another mode than they see.
type settings struct {
	mu      sync.Mutex
	chosen  []choice
	mode    string      // the current one, "" if nothing was said of it
	options backend.Raw // configOptions as last told, nil if they were not
}

// choice is a request that made one.
type choice struct {
	method, option string
	params         backend.Raw // without sessionId
}

// set takes note of a request of the client's that succeeded.
func (s *settings) set(method string, params, result backend.Raw) {
	var p struct{ ModeID, ConfigID string }
	switch method {
	case setModeMethod, setOptionMethod, setModelMethod:
		if json.Unmarshal(params, &p) != nil {
			return
		}
	default:
		return
	}
	var r struct{ ConfigOptions backend.Raw }
	_ = json.Unmarshal(result, &r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choose(choice{method, p.ConfigID, params})
	if method == setModeMethod {
		s.mode = p.ModeID
	}
	if r.ConfigOptions != nil {
		s.options = r.ConfigOptions
	}
}

// choose puts a choice in the place of the one before.
func (s *settings) choose(c choice) {
	for i, before := range s.chosen {
		if before.method == c.method && before.option == c.option {
			s.chosen[i] = c
			return
		}
	}
	s.chosen = append(s.chosen, c)
}

// see takes note of an update by which the child says that a setting is another one now.
func (s *settings) see(u backend.Update) {
	if !bytes.Contains(u, []byte("current_mode_update")) && !bytes.Contains(u, []byte("config_option_update")) {
		return
	}
	var p struct {
		Update struct {
			Kind          string `json:"sessionUpdate"`
			CurrentModeID string
			ConfigOptions backend.Raw
		}
	}
	if json.Unmarshal(u, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.Update.Kind == "current_mode_update" && p.Update.CurrentModeID != "":
		s.mode = p.Update.CurrentModeID
		if params, err := json.Marshal(map[string]string{"modeId": s.mode}); err == nil {
			s.choose(choice{method: setModeMethod, params: params})
		}
	case p.Update.Kind == "config_option_update" && p.Update.ConfigOptions != nil:
		s.options = p.Update.ConfigOptions
	}
}

// choices are the requests that make a new session like this one.
func (s *settings) choices() []choice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]choice{}, s.chosen...)
}

// current is the result of a lifecycle request as it would be now.
func (s *settings) current(result backend.Raw) backend.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options != nil {
		result = replaced(result, "configOptions", s.options)
	}
	if modes, _, err := strictjson.Take(result, "modes"); err == nil && modes != nil && s.mode != "" {
		if mode, err := json.Marshal(s.mode); err == nil {
			result = replaced(result, "modes", replaced(modes, "currentModeId", mode))
		}
	}
	return result
}

// replaced is an object with a member set, or as it was if it is none.
func replaced(object backend.Raw, name string, value backend.Raw) backend.Raw {
	with, err := strictjson.Put(object, name, value)
	if err != nil {
		return object
	}
	return with
}
