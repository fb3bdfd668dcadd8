package acp

import "cmp"

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
