package mcprelay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// RefusedError: a publisher that does not tell its roots.
type RefusedError struct {
	// Address is its socket.
	Address string
	// Err is the cause.
	Err error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the session at %s does not tell its roots: %v (the secret in %s is not its own, or it has just ended)", e.Address, e.Err, SecretVariable)
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// maxList is the most bytes of a list of roots.
const maxList = 16 << 20

// subscription is a relay's connection to its publisher.
type subscription struct {
	conn    net.Conn
	in      *jsonrpc.Reader
	log     *slog.Logger
	reading sync.WaitGroup

	mu     sync.Mutex
	list   json.RawMessage
	closed bool
}

// subscribe connects, and waits for the first list. The error is a [*SocketError] or a [*RefusedError].
func subscribe(ctx context.Context, address, secret string, within time.Duration, log *slog.Logger) (*subscription, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", address)
	if err != nil {
		return nil, &SocketError{Path: address, Hint: "the session that it was made for has ended", Err: err}
	}
	s := &subscription{conn: conn, in: jsonrpc.NewReader(conn, maxList), log: log}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	if _, err = io.WriteString(conn, secret+"\n"); err == nil {
		s.list, err = s.next()
	}
	if intime := stop(); err != nil || !intime {
		_ = conn.Close()
		if !intime {
			err = context.Cause(ctx)
		}
		return nil, &RefusedError{Address: address, Err: err}
	}
	return s, nil
}

// follow takes the lists that come from now on, and calls change after each.
func (s *subscription) follow(change func()) {
	s.reading.Go(func() {
		for {
			list, err := s.next()
			if err != nil {
				s.ended(err)
				return
			}
			s.mu.Lock()
			s.list = list
			s.mu.Unlock()
			change()
		}
	})
}

// next reads a list.
func (s *subscription) next() (json.RawMessage, error) {
	line, err := s.in.Append(nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Roots []json.RawMessage `json:"roots"`
	}
	if err := json.Unmarshal(line, &list); err != nil || list.Roots == nil {
		return nil, errors.New("it sent what is no list of roots")
	}
	return bytes.TrimSpace(line), nil
}

// ended says that no list will come any more.
func (s *subscription) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.log.Warn("the session does not tell its roots any more: the last list stays", "reason", err)
	}
}

// roots is the newest list, as a result of roots/list.
func (s *subscription) roots() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func (s *subscription) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.conn.Close()
	s.reading.Wait()
}
