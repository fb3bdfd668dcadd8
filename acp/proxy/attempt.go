package proxy

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/workspace"
)

// attempt is one request to a child with which an openRequest may be met.
type attempt struct {
	method backend.Cause // of the request to the child
	target state         // the child session to open or copy, without an id for a new one
}

// reopens reports whether the request is for the target itself.
func (a attempt) reopens() bool { return a.method == backend.Load || a.method == backend.Resume }

// trial is how an attempt has ended: with a child session, or an error.
type trial struct {
	attempt
	session *childSession
	result  backend.Raw // of the request, without the session id
	// systemParts are what a request for a new session has added to the system prompt.
	systemParts []contextPart
	passedOn    int // updates of the session's history that were passed on
	err         error
}

// terms are the conditions on which a child opens a session.
type terms struct {
	info  client.Agent
	mode  profiles.RootsMode // how it is given the roots
	given workspace.Dirs     // the additional directories that it is given in this way
	tools bool               // it is given our tool server, unless it refuses that
}

// nextAttempt returns what comes after attempts in a child that have failed, in order. found is
// false if nothing does.
//
// Each attempt is repeated without our tool server if the child rejects it: some agents take no MCP
// servers, and do not say so.
func (r *openRequest) nextAttempt(t terms, failed []trial) (next attempt, found bool) {
	if len(failed) > 0 {
		last := failed[len(failed)-1]
		if last.passedOn > 0 || !worthAnotherTry(last.err) {
			return next, false
		}
		if t.tools && !last.target.SentTools && !last.target.RefusesTools &&
			!saysUnknown(responseError(last.err)) {
			next = last.attempt
			next.target.RefusesTools = true
			return next, true
		}
	}
	attempts := r.attempts(t)
	done := 0
	for _, f := range failed {
		if f.target.RefusesTools == r.saved.RefusesTools { // otherwise it was a repetition
			done++
		}
	}
	if done == len(attempts) {
		return next, false
	}
	return attempts[done], true
}

// attempts returns the attempts to make in a child, in order, without repetitions: first with the
// session which the saved one replaces, and then those in the table of the package comment.
func (r *openRequest) attempts(t terms) (attempts []attempt) {
	add := func(method backend.Cause, target state) {
		target.Earlier, target.RootsMode = nil, t.mode
		target.RefusesTools = r.saved.RefusesTools
		attempts = append(attempts, attempt{method, target})
	}
	reopening := r.reopening(t.info)
	if earlier := r.earlier(t.given); earlier != nil && len(reopening) > 0 {
		add(reopening[0], *earlier)
	}
	switch {
	case r.saved.key() == "" || r.cause == backend.New:
	case r.cause != backend.Fork && !r.saved.keepsOther(t.given):
		for _, method := range reopening {
			add(method, r.saved)
		}
	case t.info.Fork:
		add(backend.Fork, r.saved)
	}
	if !r.mustExist {
		add(backend.New, state{From: r.saved.From})
	}
	return attempts
}

// reopening returns the requests that can open a saved session in an agent, in order.
func (r *openRequest) reopening(a client.Agent) (methods []backend.Cause) {
	if a.Load && (r.usesReplay() || !a.Resume) {
		methods = append(methods, backend.Load)
	}
	if a.Resume && (r.cause == backend.Resume || !a.Load) {
		methods = append(methods, backend.Resume)
	}
	return methods
}

// earlier returns the session of the child which the saved one replaces until the child opens that
// again. What was said since is due in it. It returns nil if no such session may be opened.
func (r *openRequest) earlier(given workspace.Dirs) *state {
	if r.saved.Earlier == nil || r.cause == backend.Fork || r.saved.Earlier.keepsOther(given) {
		return nil
	}
	earlier := *r.saved.Earlier
	earlier.HistoryDue = earlier.HistoryDue || !r.saved.HistoryDue
	return &earlier
}

// earlierAfter returns the session that the next opening tries first, after attempts that have
// failed: one that the child has not said it does not know. A rejected copy says nothing about the
// session, which may still exist.
func (r *openRequest) earlierAfter(t terms, failed []trial) *state {
	earlier := r.earlier(t.given)
	for _, f := range failed {
		if !f.reopens() {
			continue
		}
		if !saysUnknown(responseError(f.err)) {
			return &f.target
		}
		earlier = nil // it was tried before all others
	}
	return earlier
}
