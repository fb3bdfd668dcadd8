package mcprelay

import (
	"encoding/json"
	"io"
)

// Pumps are a relay without processes.
type Pumps struct{ r *relay }

// NewPumps makes a relay that writes to these, with list as the result of roots/list.
func NewPumps(o Options, list string, client, server io.Writer) Pumps {
	roots := func() json.RawMessage { return json.RawMessage(list) }
	return Pumps{newRelay(o.withDefaults(), roots, client, server)}
}

// FromClient passes what the client sends until in ends.
func (p Pumps) FromClient(in io.Reader) error { return p.r.fromClient(in) }

// FromServer passes what the server sends until in ends.
func (p Pumps) FromServer(in io.Reader) error { return p.r.fromServer(in) }

// Changed says that the roots have changed.
func (p Pumps) Changed() { p.r.changed() }

// Write writes the relay's own messages until done is closed.
func (p Pumps) Write(done <-chan struct{}) {
	other := make(chan struct{})
	go func() {
		defer close(other)
		p.r.client.run(done)
	}()
	p.r.server.run(done)
	<-other
}

// Flush writes the relay's own messages that wait.
func (p Pumps) Flush() {
	for _, w := range []*writer{p.r.client, p.r.server} {
		for len(w.own) > 0 {
			_ = w.writeOwn(<-w.own)
		}
	}
}

// Held is how many calls and bytes are held.
func (p Pumps) Held() (calls, bytes int) {
	p.r.calls.mu.Lock()
	defer p.r.calls.mu.Unlock()
	return len(p.r.calls.held), p.r.calls.bytes
}
