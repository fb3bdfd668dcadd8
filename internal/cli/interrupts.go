package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts decides what the signals to the program end. The methods of a nil *interrupts may be
// called.
type interrupts struct {
	mu  sync.Mutex
	end context.CancelFunc // what Ctrl-C ends
}

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
func listen(end context.CancelFunc) *interrupts {
	i := &interrupts{end: end}
	received := make(chan os.Signal, 1)
	signal.Notify(received, endSignals()...)
	go func() { // until the program ends
		for s := range received {
			if s != os.Interrupt {
				end()
				continue
			}
			i.mu.Lock()
			i.end()
			i.mu.Unlock()
		}
	}()
	return i
}

// only returns a context that Ctrl-C ends, in place of the program, until done is called.
func (i *interrupts) only(ctx context.Context) (part context.Context, done func()) {
	part, cancel := context.WithCancel(ctx)
	if i == nil {
		return part, cancel
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.end
	i.end = cancel
	return part, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.end = before
		cancel()
	}
}
