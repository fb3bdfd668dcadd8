package acp

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// principal is a user of a server, with any number of connections.
type principal struct {
	server  *Server
	name    string
	ctx     context.Context // of its connections and turns
	end     context.CancelFunc
	shared  *home          // of its remote connections, if their turns outlive them
	serving sync.WaitGroup // connections; grows only while the server has the principal

	// Guarded by the server's mu:
	limits Limits
	used   Limits
}

// homeOf returns the home of a new connection.
func (p *principal) homeOf(c Peer) *home {
	if c.Remote && p.shared.isShared() {
		return p.shared
	}
	return &home{owner: p}
}

// leaveHome ends the adapter of a connection that has ended, in the background: once no session and
// no prompt uses it, or with the principal.
func (p *principal) leaveHome(c *connection) {
	a := c.adapter
	c.home.leave(c)
	p.server.running.Go(func() {
		select {
		case <-a.uses.none:
			a.shutdown()
		case <-p.ctx.Done():
			a.end()
		}
	})
	a.uses.remove()
}

// endConnection frees what begin took, once the connection is not read any more.
func (p *principal) endConnection() {
	defer p.server.running.Done()
	p.release(connectionSlot)
}

// forgetLocked drops the principal if it uses nothing. After [Server.End] there may be another one
// with the name.
func (p *principal) forgetLocked() {
	if p.used != (Limits{}) {
		return
	}
	p.end()
	if p.server.principals[p.name] == p {
		delete(p.server.principals, p.name)
	}
}

// take takes a slot, until release. The error names the limit that would be exceeded.
func (p *principal) take(kind slot) error {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if refused := p.takeLocked(kind); refused != nil {
		return refused
	}
	return nil
}

func (p *principal) takeLocked(kind slot) *jsonrpc.Error {
	s, k := p.server, slotKinds[kind]
	switch perPeer, total := *p.limits.of(kind), *s.options.Total.of(kind); {
	case s.closing:
		return stateError(jsonrpc.CodeInternal,
			"the server is shutting down: connect again later", reasonData{Reason: "shutting_down"})
	case perPeer > 0 && *p.used.of(kind) >= perPeer:
		return stateError(jsonrpc.CodeInternal, fmt.Sprintf("too many %s: the limit is %d; %s",
			k.name, perPeer, k.remedy), reasonData{Reason: k.reason})
	case total > 0 && *s.used.of(kind) >= total:
		return stateError(jsonrpc.CodeInternal, fmt.Sprintf(
			"the server has too many %s of all users: the limit is %d; try again later",
			k.name, total),
			reasonData{Reason: k.reason})
	}
	*p.used.of(kind)++
	*s.used.of(kind)++
	return nil
}

// release undoes take.
func (p *principal) release(kind slot) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	s := p.server
	*p.used.of(kind)--
	*s.used.of(kind)--
	p.forgetLocked()
	if s.closing && kind == turnSlot && s.used.Turns == 0 {
		close(s.noTurns)
	}
}

// Limits are upper bounds. 0 means no limit, except for PerPeer.Sessions, where it means 1,000.
// Fixed limits hold for what each connection may queue and each session may start, so these numbers
// also limit memory and processes.
type Limits struct {
	// Connections is how many connections may be served at once.
	Connections int `json:"connections,omitzero"`
	// Sessions is how many sessions may be active at once.
	Sessions int `json:"sessions,omitzero"`
	// Turns is how many prompts may be unanswered at once.
	Turns int `json:"turns,omitzero"`
}

// of returns the number for a kind of slots.
func (l *Limits) of(kind slot) *int {
	return [...]*int{&l.Connections, &l.Sessions, &l.Turns}[kind]
}

// or returns l with the limits of other where l has none.
func (l Limits) or(other Limits) Limits {
	return Limits{cmp.Or(l.Connections, other.Connections), cmp.Or(l.Sessions, other.Sessions),
		cmp.Or(l.Turns, other.Turns)}
}

// slot is a unit of a limited resource.
type slot int

const (
	connectionSlot slot = iota
	sessionSlot
	turnSlot
)

// slotKinds say of each kind of slots what takes them, the reason that programs can read when there
// is none, and what a user can do to free one.
var slotKinds = [...]struct{ name, reason, remedy string }{
	connectionSlot: {"connections", "too_many_connections", "close one first"},
	sessionSlot:    {"active sessions", "too_many_sessions", "close one first"},
	turnSlot: {"running turns", "too_many_turns",
		"wait for an answer, or send session/cancel"},
}
