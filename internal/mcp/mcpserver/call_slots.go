package mcpserver

import (
	"context"
	"sync"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

// callSlots limit how many tool calls run, by what they hold in memory. Results take memory until
// they are written, and a client may not read: while an answer is being written, calls that have
// ended keep their slots.
type callSlots struct {
	running, files, searches chan struct{}
	answers                  sync.Mutex // held while an answer is written
}

func newCallSlots(l limits) *callSlots {
	return &callSlots{running: make(chan struct{}, l.calls), files: make(chan struct{}, l.files),
		searches: make(chan struct{}, l.files)}
}

// use runs a call of a tool when there are slots for it, unless ctx ends before. Searches hold whole
// files too, but take long, so other calls do not wait for them.
func (s *callSlots) use(ctx context.Context, t tools.Tool, call func() error) error {
	needed := []chan struct{}{s.files, s.running} // a call that waits for a file is not running
	switch {
	case !t.HoldsFile:
		needed = needed[1:]
	case t.Kind == tools.KindSearch:
		needed[0] = s.searches
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
