package proxy

import (
	"cmp"
	"time"
)

// Exported for tests.
var (
	WithoutBlocks = withoutBlocks
	AgentName     = agentName
	ShellLine     = shellLine
	Flags         = Profile.flags
)

// Limits are bounds and times that tests change. A zero field means its default.
type Limits struct {
	StartTimeout, CancelGrace, EndTimeout, Idle, Backoff, ProcessGrace                time.Duration
	MaxQueue, MaxHeld, MaxHeldBytes, MaxContext, MaxInstructions, MaxSkills, MaxPages int
}

// With returns o with other limits.
func (o Options) With(l Limits) Options {
	o.limits = limits{
		startTimeout: l.StartTimeout, cancelGrace: l.CancelGrace, endTimeout: l.EndTimeout, idle: l.Idle, backoff: l.Backoff,
		processGrace: l.ProcessGrace, maxQueue: l.MaxQueue, maxHeld: l.MaxHeld, maxHeldBytes: l.MaxHeldBytes,
		maxContext: l.MaxContext, maxInstructions: l.MaxInstructions, maxSkills: l.MaxSkills, maxPages: l.MaxPages,
	}
	return o
}

// WithProcessGrace returns o with another grace for the process if none is set.
func (o Options) WithProcessGrace(d time.Duration) Options {
	o.limits.processGrace = cmp.Or(o.limits.processGrace, d)
	return o
}

// EndedError is returned for the requests of a child that has ended.
type EndedError = endedError
