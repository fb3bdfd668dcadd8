package proxy

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// plan decides how a session is opened in a child: with which trials, and in which order.
type plan struct {
	asked backend.Activation // only its cause for a session that is opened again
	saved state              // of the session; for a fork, that of its source
	agent client.Agent       // what the child says that it can do
	mode  profiles.RootsMode // how the child is given the roots
	given workspace.Dirs     // the additional directories that it is given in this way
	tools bool               // it is given our tool server, unless it refuses that
}

// trial is one request to a child with which a session may be opened, and how it has ended: with a
// child session, an error, or both if the child may have opened the session anyway.
type trial struct {
	method backend.Cause // of the request to the child
	// target is the child session as it is if the request succeeds. A new one has no id yet; a copy
	// has that of the one to copy.
	target   state
	session  *childSession
	result   backend.Raw // of the request, without the session id
	passedOn int         // updates of the session's history that were passed on
	err      error
	// refusal is with what the child has rejected the same request with our tool server, or nil.
	refusal error
}

// reopens reports whether the request is for the target itself.
func (t trial) reopens() bool { return t.method == backend.Load || t.method == backend.Resume }

// failed returns the trial as it has ended with an error.
func (t trial) failed(err error) trial {
	t.err = err
	return t
}

// isRejected reports whether another trial may be made, because the child has only rejected this
// one.
func (t trial) isRejected() bool { return t.passedOn == 0 && worthAnotherTry(t.err) }

// mayRefuseTools reports whether the request may have been rejected because of our tool server:
// some agents take no MCP servers, and do not say so.
func (t trial) mayRefuseTools() bool {
	return t.isRejected() && !t.target.SentTools && !t.target.RefusesTools &&
		!saysUnknown(child.Rejection(t.err))
}

// try makes the planned trials until one succeeds, or no other may be made, and returns those that
// were made. send makes one.
func (p plan) try(send func(trial) trial) (made []trial) {
	for _, planned := range p.trials() {
		t := send(planned)
		if refusal := t.err; p.tools && t.mayRefuseTools() {
			planned.target.RefusesTools = true
			t = send(planned)
			t.refusal = refusal
		}
		made = append(made, t)
		if !t.isRejected() {
			break
		}
	}
	return made
}

// trials returns the trials to make, in order: first with the session which the saved one replaces,
// and then those in the table of the package comment.
func (p plan) trials() (list []trial) {
	add := func(method backend.Cause, target state) {
		target.Earlier, target.RootsMode = nil, p.mode
		target.RefusesTools = p.saved.RefusesTools
		if p.mode != profiles.RootsByContext {
			target.Sent.Roots = ""
		}
		list = append(list, trial{method: method, target: target})
	}
	reopening := p.reopening()
	if earlier := p.earlier(); earlier != nil && len(reopening) > 0 {
		add(reopening[0], *earlier)
	}
	switch {
	case p.saved.key() == "" || p.asked.Cause == backend.New:
	case p.asked.Cause != backend.Fork && !p.saved.keepsOther(p.given):
		for _, method := range reopening {
			add(method, p.saved)
		}
	case p.agent.Fork:
		add(backend.Fork, p.saved)
	}
	if !p.asked.MustExist {
		add(backend.New, state{From: p.saved.From})
	}
	return list
}

// reopening returns the requests with which the child can open a saved session, in order.
func (p plan) reopening() (methods []backend.Cause) {
	can := p.agent
	if can.Load && (p.usesReplay() || !can.Resume) {
		methods = append(methods, backend.Load)
	}
	if can.Resume && (p.asked.Cause == backend.Resume || !can.Load) {
		methods = append(methods, backend.Resume)
	}
	return methods
}

// usesReplay reports whether the child's replay is passed on: to show what is not stored, or to
// record what only the child knows.
func (p plan) usesReplay() bool {
	return p.asked.Cause == backend.Load || p.asked.Cause == backend.Resume && p.asked.MustExist
}

// earlier returns the session of the child which the saved one replaces until the child opens that
// again. What was said since is due in it. It returns nil if no such session may be opened.
func (p plan) earlier() *state {
	if p.saved.Earlier == nil || p.asked.Cause == backend.Fork ||
		p.saved.Earlier.keepsOther(p.given) {
		return nil
	}
	earlier := *p.saved.Earlier
	earlier.HistoryDue = earlier.HistoryDue || !p.saved.HistoryDue
	return &earlier
}

// earlierAfter returns the session that the next opening tries first, after trials that have
// failed: one that the child has not said it does not know. A rejected copy says nothing about the
// session, which may still exist.
func (p plan) earlierAfter(failed []trial) *state {
	earlier := p.earlier()
	for _, f := range failed {
		if !f.reopens() {
			continue
		}
		if !saysUnknown(child.Rejection(f.err)) {
			return &f.target
		}
		earlier = nil // it was tried before all others
	}
	return earlier
}

// worthAnotherTry reports whether to make another trial after an error. Agents use many codes for
// sessions that they do not know.
func worthAnotherTry(err error) bool {
	e := child.Rejection(err)
	return e != nil && e.Code != protocol.CodeAuthRequired && e.Code != jsonrpc.CodeCancelled
}

// unknownSession matches how agents say that they do not know a session, and not what else they may
// not find.
var unknownSession = text.Pattern(`(?i)\b(unknown|no such) ` + anySession +
	`|\binvalid session ?id|\bno (\w+ )?` + anySession + ` (found|with id)|\b` + anySession +
	`\W*(id\W+)?([\w-]*\d[\w-]*\W+)?` +
	`((was )?not found|(is )?unknown|does not exist|doesn't exist|(was )?deleted)`)

const anySession = `(session|conversation|thread|rollout)s?`

// saysUnknown reports whether the child has answered that it does not know a session.
func saysUnknown(e *jsonrpc.Error) bool {
	return e.Code == protocol.CodeNotFound ||
		unknownSession().MatchString(e.Message+"\n"+string(e.Data))
}
