package mcprelay

import (
	"bufio"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"
)

// acceptPause is the rest after a connection that could not be accepted.
const acceptPause = 100 * time.Millisecond

// accept serves each relay that connects.
func (p *Publisher) accept() {
	for {
		conn, err := p.listener.Accept()
		if err == nil {
			p.admit(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		p.options.Logger.Warn("an MCP relay could not connect", "error", err)
		select {
		case <-time.After(acceptPause):
		case <-p.done:
			return
		}
	}
}

// admit serves a connection, if it is not one too many.
func (p *Publisher) admit(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.relays) >= p.options.MaxRelays {
		p.options.Logger.Warn("an MCP relay is turned away", "limit", p.options.MaxRelays)
		_ = conn.Close()
		return
	}
	p.relays[conn] = struct{}{}
	p.serving.Go(func() {
		defer p.dismiss(conn)
		if err := p.serve(conn); err != nil {
			p.options.Logger.Warn("an MCP relay does not hear of the roots any more", "error", err)
		}
	})
}

func (p *Publisher) dismiss(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.relays, conn)
}

var errSecret = errors.New("it did not say the secret of this session")

// serve tells a relay each list, until it leaves or the publisher is closed.
func (p *Publisher) serve(conn net.Conn) error {
	if err := conn.SetReadDeadline(time.Now().Add(p.options.Timeout)); err != nil {
		return p.unlessClosed(err)
	}
	if !p.knows(conn) {
		return p.unlessClosed(errSecret)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return p.unlessClosed(err)
	}
	left := make(chan struct{})
	p.serving.Go(func() {
		defer close(left)
		_, _ = conn.Read(make([]byte, 1)) // it has nothing to say (A24)
	})
	var told json.RawMessage
	for {
		list, changed := p.current()
		if list != nil && string(list) != string(told) {
			if err := p.tell(conn, list); err != nil {
				return p.unlessClosed(err)
			}
			told = list
		}
		select {
		case <-changed:
		case <-left:
			return nil
		}
	}
}

// knows reports whether the other side says the secret, as its first line. No more than that is read.
func (p *Publisher) knows(conn net.Conn) bool {
	in := bufio.NewReaderSize(io.LimitReader(conn, int64(len(p.secret)+1)), len(p.secret)+1)
	line, _ := in.ReadSlice('\n')
	return subtle.ConstantTimeCompare(line, []byte(p.secret+"\n")) == 1
}

func (p *Publisher) current() (json.RawMessage, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list, p.changed
}

func (p *Publisher) tell(conn net.Conn, list json.RawMessage) error {
	if err := conn.SetWriteDeadline(time.Now().Add(p.options.Timeout)); err != nil {
		return err
	}
	_, err := conn.Write(append(list[:len(list):len(list)], '\n'))
	return err
}

// unlessClosed is err, or nil if it comes from Close.
func (p *Publisher) unlessClosed(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	return err
}
