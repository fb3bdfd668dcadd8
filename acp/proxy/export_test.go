package proxy

import (
	"cmp"
	"time"
)

// Exported for tests.
var (
	WithoutBlocks = withoutBlocks
)

// OwnDirs returns the real paths of the agent's own directories.
func OwnDirs(command Command, o Options) (dirs []string) {
	for _, dir := range newProxy(command, o).ownDirs(command) {
		dirs = append(dirs, dir.real)
	}
	return dirs
}

// Limits are bounds and times that tests change.
type Limits = limits

// With returns o with other limits.
func (o Options) With(l Limits) Options {
	o.limits = l
	return o
}

// WithProcessGrace returns o with another grace for the process if none is set.
func (o Options) WithProcessGrace(d time.Duration) Options {
	o.limits.ProcessGrace = cmp.Or(o.limits.ProcessGrace, d)
	return o
}

// EndedError is returned for the requests of a child that has ended.
type EndedError = endedError

// Running returns how many processes are running.
func (p *Pool) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}
