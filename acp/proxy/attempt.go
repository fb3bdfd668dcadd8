package proxy

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
)

// attempt is one request to a child with which a session may be opened.
type attempt struct {
	method backend.Cause // of the request to the child
	// target is the child session as it is if the request succeeds. A new one has no id yet; a copy
	// has that of the one to copy.
	target state
}

// reopens reports whether the request is for the target itself.
func (a attempt) reopens() bool { return a.method == backend.Load || a.method == backend.Resume }

// trial is how an attempt has ended: with a child session, or an error.
type trial struct {
	attempt
	session  *childSession
	result   backend.Raw // of the request, without the session id
	passedOn int         // updates of the session's history that were passed on
	err      error
	// refusal is with what the child has rejected the same attempt with our tool server, or nil.
	refusal error
}

// isRejected reports whether another attempt may be made, because the child has only rejected this
// one.
func (t trial) isRejected() bool { return t.passedOn == 0 && worthAnotherTry(t.err) }

// mayRefuseTools reports whether the attempt may have been rejected because of our tool server:
// some agents take no MCP servers, and do not say so.
func (t trial) mayRefuseTools() bool {
	return t.isRejected() && !t.target.SentTools && !t.target.RefusesTools &&
		!saysUnknown(responseError(t.err))
}

// try makes the planned attempts until one succeeds, or no other may be made, and returns how they
// have ended. send makes one.
func (o opener) try(send func(attempt) trial) (trials []trial) {
	for _, a := range o.plan() {
		t := send(a)
		if refusal := t.err; o.tools && t.mayRefuseTools() {
			a.target.RefusesTools = true
			t = send(a)
			t.refusal = refusal
		}
		trials = append(trials, t)
		if !t.isRejected() {
			break
		}
	}
	return trials
}

// plan returns the attempts to make, in order: first with the session which the saved one replaces,
// and then those in the table of the package comment.
func (o opener) plan() (attempts []attempt) {
	add := func(method backend.Cause, target state) {
		target.Earlier, target.RootsMode = nil, o.use.mode
		target.RefusesTools = o.saved.RefusesTools
		if o.use.mode != profiles.RootsByContext {
			target.SentRoots = ""
		}
		attempts = append(attempts, attempt{method, target})
	}
	reopening := o.reopening()
	if earlier := o.earlier(); earlier != nil && len(reopening) > 0 {
		add(reopening[0], *earlier)
	}
	switch {
	case o.saved.key() == "" || o.asked.Cause == backend.New:
	case o.asked.Cause != backend.Fork && !o.saved.keepsOther(o.given):
		for _, method := range reopening {
			add(method, o.saved)
		}
	case o.use.child.info.Fork:
		add(backend.Fork, o.saved)
	}
	if !o.asked.MustExist {
		add(backend.New, state{From: o.saved.From})
	}
	return attempts
}

// reopening returns the requests with which the child can open a saved session, in order.
func (o opener) reopening() (methods []backend.Cause) {
	can := o.use.child.info
	if can.Load && (o.usesReplay() || !can.Resume) {
		methods = append(methods, backend.Load)
	}
	if can.Resume && (o.asked.Cause == backend.Resume || !can.Load) {
		methods = append(methods, backend.Resume)
	}
	return methods
}

// usesReplay reports whether the child's replay is passed on: to show what is not stored, or to
// record what only the child knows.
func (o opener) usesReplay() bool {
	return o.asked.Cause == backend.Load || o.asked.Cause == backend.Resume && o.asked.MustExist
}

// earlier returns the session of the child which the saved one replaces until the child opens that
// again. What was said since is due in it. It returns nil if no such session may be opened.
func (o opener) earlier() *state {
	if o.saved.Earlier == nil || o.asked.Cause == backend.Fork ||
		o.saved.Earlier.keepsOther(o.given) {
		return nil
	}
	earlier := *o.saved.Earlier
	earlier.HistoryDue = earlier.HistoryDue || !o.saved.HistoryDue
	return &earlier
}

// earlierAfter returns the session that the next opening tries first, after attempts that have
// failed: one that the child has not said it does not know. A rejected copy says nothing about the
// session, which may still exist.
func (o opener) earlierAfter(failed []trial) *state {
	earlier := o.earlier()
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
