package mcpclient

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// calls are the calls that run on a connection.
type calls struct {
	mu     sync.Mutex
	over   bool
	last   int
	active map[string]*running
}

// running is a call that was sent.
type running struct {
	token  string
	calls  *calls
	cancel context.CancelCauseFunc
	news   chan struct{} // has one when latest is new
	latest string        // guarded by calls.mu
	first  func()        // called once, with the first news; guarded by calls.mu
}

// begin notes a call. The context ends with the connection. first is called once, if there is news of how far the
// call is, until its end; it must not block.
func (c *calls) begin(ctx context.Context, first func(context.Context, *running)) (context.Context, *running, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, nil, errStopped
	}
	c.last++
	r := &running{token: strconv.Itoa(c.last), calls: c, news: make(chan struct{}, 1)}
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.first = func() { first(ctx, r) }
	if c.active == nil {
		c.active = map[string]*running{}
	}
	c.active[r.token] = r
	return ctx, r, nil
}

func (r *running) end() {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	delete(r.calls.active, r.token)
	r.cancel(nil)
}

// end ends all calls.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, r := range c.active {
		r.cancel(errEndedInCall)
	}
}

// ended reports whether no call can begin any more.
func (c *calls) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// progress notes how far a call is. It does not block: only the latest is kept.
func (c *calls) progress(p *mcp.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.active[token]
	if r == nil {
		return
	}
	r.latest = describeProgress(p)
	if r.first != nil {
		r.first()
		r.first = nil
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func describeProgress(p *mcp.ProgressNotificationParams) string {
	const most = 500
	text := strconv.FormatFloat(p.Progress, 'g', 6, 64)
	if p.Total > 0 {
		text = fmt.Sprintf("%s of %s", text, strconv.FormatFloat(p.Total, 'g', 6, 64))
	}
	if message := cut(p.Message, most); message != "" {
		text += ": " + message
	}
	return text
}

// betweenProgress is the least time between two updates of one call.
const betweenProgress = 200 * time.Millisecond

// showProgress shows how far the call is, until ctx ends.
func (c *call) showProgress(ctx context.Context, r *running) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.news:
		}
		r.calls.mu.Lock()
		latest := cmp.Or(r.latest, "…")
		r.calls.mu.Unlock()
		if c.show(ctx, inProgress, []backend.Raw{textBlock(latest)}) != nil {
			return
		}
		timer := time.NewTimer(betweenProgress)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
