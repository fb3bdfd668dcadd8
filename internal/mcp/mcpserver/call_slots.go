package mcpserver

import (
	"context"
	"sync"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

// memory says what a call holds in memory. Searches take long, so other calls do not wait for them.
type memory int

const (
	holdsLittle memory = iota
	holdsFile          // whole files
	searches           // whole files, one after the other
	memories           // the number of these
)

func memoryOf(t tools.Tool) memory {
	switch {
	case !t.HoldsFile:
		return holdsLittle
	case t.Kind == tools.KindSearch:
		return searches
	default:
		return holdsFile
	}
}

// callSlots limit how many tool calls run, by what they hold in memory. Results take memory until
// they are written, and a client may not read: while an answer is being written, calls that have
// ended keep their slots.
type callSlots struct {
	free    [memories]chan struct{}
	answers sync.Mutex // held while an answer is written
}

func newCallSlots(l limits) *callSlots {
	return &callSlots{free: [memories]chan struct{}{make(chan struct{}, l.calls),
		make(chan struct{}, l.files), make(chan struct{}, l.files)}}
}

// use runs a call when there are slots for it, unless ctx ends before.
func (s *callSlots) use(ctx context.Context, held memory, call func() error) error {
	needed := []chan struct{}{s.free[holdsLittle]}
	if held != holdsLittle { // a call that waits for a file slot is not running
		needed = []chan struct{}{s.free[held], s.free[holdsLittle]}
	}
	for _, slot := range needed {
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := call()
	s.answers.Lock()
	defer s.answers.Unlock()
	return err
}
