package acp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

const (
	// replayBurst is how many updates of a load go out at once.
	replayBurst = 512
	// replayRate is how many a second follow, if Options say nothing else.
	replayRate = 6_000
	// paceSlack is how far a replay may be ahead of its pace, since timers are coarse, and how much of what
	// it lost it may make up for.
	paceSlack = 2 * time.Millisecond
)

// pace holds a load's replay back to what a client can handle. A pipe pushes back when a client does not read, but
// some read everything and keep what they have not handled: the Go SDK's keeps 1,024 notifications, then closes the
// connection. A pace that was lost, because the client did not read for a while, is not made up for.
type pace struct {
	interval time.Duration // between two updates; 0 for no pace
	request  context.Context

	mu    sync.Mutex
	free  int       // updates that may go at once
	next  time.Time // when the next one is due
	timer *time.Timer
}

// newPace is the pace of a load whose request has the context ctx.
func (o Options) newPace(ctx context.Context) *pace {
	p := &pace{request: ctx, free: replayBurst}
	if o.ReplayRate > 0 {
		p.interval = time.Second / time.Duration(o.ReplayRate)
	}
	return p
}

// wait returns when the next update may go, or ctx ended. A client that has closed its end gets the
// rest at once: it is only given the time to end (W9).
func (p *pace) wait(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interval == 0 {
		return
	}
	if p.free > 0 {
		p.free--
		return
	}
	now := time.Now()
	if lost := now.Add(-paceSlack); p.next.Before(lost) {
		p.next = lost
	}
	due := p.next
	p.next = p.next.Add(p.interval)
	if ahead := due.Sub(now); ahead > paceSlack {
		p.sleep(ctx, ahead)
	}
}

func (p *pace) sleep(ctx context.Context, d time.Duration) {
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	request := p.request.Done()
	for {
		select {
		case <-p.timer.C:
			return
		case <-ctx.Done():
			return
		case <-request:
			request = nil
			if errors.Is(context.Cause(p.request), jsonrpc.ErrClosed) {
				p.interval = 0
				return
			}
		}
	}
}
