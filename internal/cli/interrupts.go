package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts decides what the signals to the program end.
type interrupts struct {
	mu  sync.Mutex
	end context.CancelCauseFunc // what Ctrl-C ends
}

// errInterrupted is the cause of a context that Ctrl-C has ended.
var errInterrupted = fmt.Errorf("interrupted: %w", context.Canceled)

// statusInterrupted is the exit status of a program that the user has interrupted.
const statusInterrupted = 130

// endSignals returns the signals that end the program. SIGHUP is not one of them if the program was
// started with nohup.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// listen calls end when the program gets a signal that ends it, unless that ends only a part.
func listen(end context.CancelCauseFunc) *interrupts {
	i := &interrupts{end: end}
	received := make(chan os.Signal, 1)
	signal.Notify(received, endSignals()...)
	go func() { // until the program ends
		for s := range received {
			if s != os.Interrupt {
				end(nil)
				continue
			}
			i.mu.Lock()
			i.end(errInterrupted)
			i.mu.Unlock()
		}
	}()
	return i
}

// only returns a context that Ctrl-C ends, in place of the program, until done is called.
func (i *interrupts) only(ctx context.Context) (part context.Context, done func()) {
	part, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.end
	i.end = cancel
	return part, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.end = before
		cancel(nil)
	}
}
