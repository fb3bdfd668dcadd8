package mcpclient

import (
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// questions are the requests of a server whose answers it has not taken. The SDK works at once on all that it reads, and
// each waits until its answer is written: a server that asks and does not read would fill our memory.
type questions struct {
	limit  int
	within time.Duration // how long a server may take none of the answers

	mu    sync.Mutex
	open  map[jsonrpc.ID]bool
	fewer chan struct{} // closed when an answer is taken
}

func newQuestions(o Options) *questions {
	return &questions{limit: o.MaxQuestions, within: o.SettleMax, open: map[jsonrpc.ID]bool{}, fewer: make(chan struct{})}
}

// room waits until there is room for one more, or done is closed. The error is an [*UnreadError].
func (q *questions) room(done <-chan struct{}) error {
	var late <-chan time.Time
	for {
		q.mu.Lock()
		full, fewer := len(q.open) >= q.limit, q.fewer
		q.mu.Unlock()
		if !full {
			return nil
		}
		if late == nil {
			timer := time.NewTimer(q.within)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-fewer:
		case <-late:
			return &UnreadError{Questions: q.limit, Bound: q.within}
		case <-done:
			return nil
		}
	}
}

// add notes a question. One with an id that is in use is refused by the SDK, and counts with that.
func (q *questions) add(id jsonrpc.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open[id] = true
}

// taken notes that the server has taken an answer, or never will.
func (q *questions) taken(id jsonrpc.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, id)
	close(q.fewer)
	q.fewer = make(chan struct{})
}

// allowance lets so many through in each second.
type allowance struct {
	perSecond int
	since     time.Time
	taken     int
}

// take waits for the next second once this one's are used up, unless done.
func (a *allowance) take(done <-chan struct{}) {
	now := time.Now()
	if now.Sub(a.since) >= time.Second {
		a.since, a.taken = now, 0
	}
	if a.taken++; a.taken <= a.perSecond {
		return
	}
	timer := time.NewTimer(a.since.Add(time.Second).Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}
