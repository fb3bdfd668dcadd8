package proxy

import (
	"bytes"
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// wanted is what a session of the child's is wanted for.
type wanted struct {
	cause    backend.Cause
	state    state                           // what was saved, of the source if it is a fork
	previous *session                        // the activation that is replaced, nil if there is none
	stop     func(ctx context.Context) error // ends its turn
	unsaid   int                             // blocks at the end of the history that the child is about to be sent
	unread   bool                            // it goes on even if the history cannot be read
	goesOn   bool                            // the session of the activation before serves as it is
	unfit    bool                            // the child's replay is not to be shown
}

// step is a way to a session of the child's.
type step string

const (
	byNew    step = step(backend.New)
	byLoad   step = step(backend.Load)
	byResume step = step(backend.Resume)
	byFork   step = step(backend.Fork)
	byGoOn   step = "go on" // with the session of the activation that is replaced
)

// steps are the ways to try, in order. It is the table in the package comment.
func steps(w wanted, a client.Agent) []step {
	var ways []step
	known := w.state.key() != ""
	switch {
	case w.cause == backend.New:
	case w.cause == backend.Fork:
		if known && a.Fork {
			ways = append(ways, byFork)
		}
	case known && a.Load && (w.shows() || !a.Resume):
		ways = append(ways, byLoad)
	case known && a.Resume:
		ways = append(ways, byResume)
	}
	if w.goesOn {
		ways = append(ways, byGoOn)
	}
	return append(ways, byNew)
}

// shows reports whether a replay by the child is for the client. One that lacks the beginning or something else, or whose
// end cannot be told, is not: it would take the place of ours, which is whole.
func (w wanted) shows() bool { return w.cause == backend.Load && !w.state.Partial && !w.unfit }

// connection is a session of the child's that was got.
type connection struct {
	link   *link
	by     step
	way    profile.Way
	result backend.Raw
	shown  int // updates of its history that the client was shown
}

// connect gives the activation a session of the child's.
func (s *session) connect(ctx context.Context, w wanted) (opened backend.Opened, err error) {
	before := w.link()
	a, how, err := s.proxy.childFor(ctx, s.roots, before)
	if err != nil {
		return backend.Opened{}, err
	}
	s.warn(a, how)
	w.goesOn = s.canGoOn(a, how, w)
	ways := steps(w, a.info)
	for i, by := range ways {
		var c connection
		if c, err = s.take(ctx, by, a, how, w); err == nil {
			return s.settle(ctx, c, w)
		}
		if i+1 == len(ways) || !surmountable(err) || c.shown > 0 {
			break
		}
		// Not with its words: they may quote the request, whose MCP servers have secrets.
		a.log.Warn("the agent refused a session: another way is tried", "refused", by, "code", refusal(err).Code, "next", ways[i+1])
	}
	if releaseErr := a.release(context.WithoutCancel(ctx)); releaseErr != nil {
		a.log.Warn("ending an agent", "error", releaseErr)
	}
	return backend.Opened{}, s.proxy.explained(err)
}

// warn says in the log what the child is not told by the protocol.
func (s *session) warn(a *agent, how profile.Way) {
	if others := s.roots.Additional(); how == profile.ByContext && others.Len() > 0 {
		a.log.Warn("the agent does not support additional directories: it is told of them before its next prompt",
			"agent", a.info.Name, "directories", others.Strings())
	}
}

// link is the link of the activation that is replaced, nil if there is none.
func (w wanted) link() *link {
	if w.previous == nil {
		return nil
	}
	return w.previous.living()
}

// canGoOn reports whether the child's session of the activation before serves this one as it is: nothing
// would have to be said to the child that only a lifecycle request can.
func (s *session) canGoOn(a *agent, how profile.Way, w wanted) bool {
	before := w.link()
	return before != nil && before.agent == a && w.cause != backend.Fork &&
		(s.roots.Equal(w.previous.roots) || how == profile.ByContext && s.toolsFor(how).name == "" && w.previous.toolsFor(how).name == "") &&
		s.hasServersOf(w.previous)
}

// asksAs reports whether a lifecycle request of s asks for what one of other asks for.
func (s *session) asksAs(other *session) bool {
	return s.roots.Equal(other.roots) && s.hasServersOf(other)
}

func (s *session) hasServersOf(other *session) bool {
	return bytes.Equal(serversIn(s.params), serversIn(other.params))
}

// serversIn are the MCP servers in the params of a lifecycle request; none for null and nothing.
func serversIn(params backend.Raw) []byte {
	servers, _, err := strictjson.Take(params, serversMember)
	if err != nil || servers == nil || string(servers) == "null" {
		return []byte("[]")
	}
	return bytes.TrimSpace(servers)
}

// take tries one way.
func (s *session) take(ctx context.Context, by step, a *agent, how profile.Way, w wanted) (connection, error) {
	switch by {
	case byGoOn:
		l := w.link()
		if l == nil {
			return connection{}, &EndedError{Name: a.process.Name()}
		}
		l.join(s)
		a.holds.Add(-1) // the link has one
		return connection{link: l, by: by, way: how, result: l.settings.current(l.opened())}, nil
	case byLoad, byResume:
		return s.reopen(ctx, by, a, how, w)
	default:
		return s.create(ctx, by, a, how, w)
	}
}

// settle makes the connection the session's.
func (s *session) settle(ctx context.Context, c connection, w wanted) (backend.Opened, error) {
	saved, told, err := s.tell(ctx, c, w)
	if err == nil {
		err = s.save(ctx, saved)
	}
	if err == nil {
		var before *link
		var open bool
		if before, open = s.adopt(c.link, saved, told); !open {
			err = errSessionClosed
		} else if before != nil {
			err = before.leave(ctx, s)
		}
	}
	if err != nil {
		if leaveErr := c.link.leave(context.WithoutCancel(ctx), s); leaveErr != nil {
			s.proxy.log.Warn("closing a session of the agent", "error", leaveErr)
		}
		return backend.Opened{}, err
	}
	s.relays.show(s)
	s.announced.isOutdated(s.host.Catalog())
	if err := s.announceFound(ctx, s.host); err != nil {
		s.proxy.log.Debug("the commands of the roots were not announced", "error", err)
	}
	opened := backend.Opened{Result: c.result}
	if c.shown > 0 {
		opened.Replay = backend.ByRuntime
	}
	return opened, nil
}

// soFar is the conversation so far, in words. A session that cannot be opened without is not; one that is in use
// goes on, and the child is told when the record can be read.
func (s *session) soFar(w wanted) (string, error) {
	text, err := conversation(s.history, s.proxy.options.MaxContext, w.unsaid)
	if err != nil && w.unread {
		s.proxy.log.Warn("the agent that was started anew is not told what was said so far: the record cannot be read", "error", err)
		return "", nil
	}
	return text, err
}

// tell is what is to be saved of a connection, and what the child is to be told in words.
func (s *session) tell(ctx context.Context, c connection, w wanted) (saved state, told pending, err error) {
	if c.by != byNew {
		saved = w.state
	}
	saved.ID, saved.Way, saved.Offered = c.link.id, c.way, len(s.found(commandNames(s.announced.own()))) > 0
	if c.by == byNew && w.cause != backend.New || saved.Due {
		if told.soFar, err = s.soFar(w); err != nil {
			return state{}, pending{}, err
		}
		saved.Due = told.soFar != "" || w.unread
		saved.Partial = saved.Partial || saved.Due
	}
	tools := s.toolsFor(c.way)
	switch now := digest(s.roots, tools); {
	case c.way != profile.ByContext:
		saved.Told = ""
	case saved.Told == now, saved.Told == "" && s.roots.Additional().Len() == 0:
	default:
		told.told = now
		told.roots = introduction(ctx, s.roots, s.host.Workspace(), tools)
	}
	return saved, told, nil
}
