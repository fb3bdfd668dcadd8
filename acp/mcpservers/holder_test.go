package mcpservers_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// holders sees processes that hold a connection: one that ended has closed it, whoever collects it.
type holders struct {
	t        testing.TB
	listener net.Listener
	accepted chan net.Conn
}

func newHolders(t testing.TB) *holders {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &holders{t, l, make(chan net.Conn, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.accepted <- c
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return h
}

func (h *holders) env() string { return address + "=" + h.listener.Addr().String() }

// next waits until a holder lives.
func (h *holders) next() net.Conn {
	h.t.Helper()
	select {
	case c := <-h.accepted:
		h.greeted(c)
		return c
	case <-time.After(patience):
		h.t.Fatal("nobody came")
		return nil
	}
}

func (h *holders) greeted(c net.Conn) {
	h.t.Helper()
	h.t.Cleanup(func() { _ = c.Close() })
	require.NoError(h.t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(h.t, err)
}

// living are the holders that have come so far.
func (h *holders) living() (all []net.Conn) {
	for {
		select {
		case c := <-h.accepted:
			h.greeted(c)
			all = append(all, c)
		default:
			return all
		}
	}
}

// ended fails unless the holder ends.
func (h *holders) ended(c net.Conn) {
	h.t.Helper()
	require.NoError(h.t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := c.Read(make([]byte, 1))
	if err != io.EOF {
		var timeout net.Error
		require.ErrorAs(h.t, err, &timeout)
		require.False(h.t, timeout.Timeout(), "the process lives on")
	}
}
