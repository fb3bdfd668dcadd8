package mcpclient

//lint:file-ignore SA1019 the SDK marks all of roots and logging as deprecated (SEP-2577); they are served for the servers that there are

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/acp-agent/acp-agent/internal/mcproots"
)

// What a connected server is told of the roots, and when it may be called after that.

// asked: the server was told the roots.
func (l *link) asked(roots mcproots.Snapshot) {
	l.barrier.answered()
	l.mu.Lock()
	l.told, l.toldAt = roots.URIs(), time.Now()
	l.mu.Unlock()
	if l.modern() {
		l.server.warn(featureRoots)
	}
}

// modern reports whether the server is known to be one. Its messages can come before Connect has returned.
func (l *link) modern() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session != nil && l.session.Modern()
}

// knows reports what the server was told last, and when.
func (l *link) knows() ([]string, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.told), l.toldAt
}

// begin is called once the server is connected, when its first roots are to be waited for.
func (l *link) begin() {
	if l.server.config.rootsOn() && !l.session.Modern() && l.barrier.shut() && !l.server.set.spawn(l.settle) {
		l.barrier.lift()
	}
	r := l.session.InitializeResult()
	switch {
	case r.Capabilities == nil || r.Capabilities.Logging == nil:
	case l.session.Modern():
		l.server.warn(featureLogging)
	default:
		l.server.set.spawn(l.wantMessages)
	}
}

// settle opens the barrier once the server has had time to read the roots.
func (l *link) settle() {
	ctx, cancel := context.WithCancel(l.server.context)
	defer cancel()
	l.barrier.settle(ctx, func(ctx context.Context) error {
		err := l.session.Ping(ctx, nil)
		if refusal := (*jsonrpc.Error)(nil); errors.As(err, &refusal) {
			return nil // an answer too
		}
		return err
	})
}

// tell tells the server of new roots, and shuts the barrier until it has had time to read them.
func (l *link) tell() {
	if !l.server.config.rootsOn() || l.session.Modern() {
		return
	}
	wasOpen := l.barrier.shut()
	told := l.server.set.spawn(func() {
		l.announce()
		if wasOpen {
			l.settle()
		}
	})
	if !told {
		l.barrier.lift()
	}
}

// isReady reports whether calls can be sent at once.
func (l *link) isReady() bool {
	if l.calls.ended() {
		return false
	}
	select {
	case <-l.barrier.passed():
		return true
	default:
		return false
	}
}

// announce tells the server that the roots have changed, and waits a bounded time until it took the message.
func (l *link) announce() {
	if l.session.Modern() || !l.server.config.rootsOn() {
		return
	}
	done := make(chan struct{})
	l.server.set.running.Go(func() {
		defer close(done)
		l.session.Announce()
	})
	timer := time.NewTimer(l.server.set.options.NotifyTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-l.ended:
	case <-timer.C:
		l.server.log.Warn("an MCP server does not take the notice that the roots have changed", "waited", l.server.set.options.NotifyTimeout)
	}
}
