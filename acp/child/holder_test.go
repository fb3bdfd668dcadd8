//go:build unix

package child_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// holders sees processes that hold a connection: one that ended has closed it, whoever
// collects it.
type holders struct {
	t        *testing.T
	listener net.Listener
}

func newHolders(t *testing.T) holders {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return holders{t, l}
}

func (h holders) env() string { return address + "=" + h.listener.Addr().String() }

// next waits until a holder lives.
func (h holders) next() net.Conn {
	require.NoError(h.t, h.listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	c, err := h.listener.Accept()
	require.NoError(h.t, err)
	h.t.Cleanup(func() { c.Close() })
	_, err = bufio.NewReader(c).ReadString('\n')
	require.NoError(h.t, err)
	return c
}

// ended fails unless the holder ends.
func (h holders) ended(c net.Conn) {
	require.NoError(h.t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := c.Read(make([]byte, 1))
	var timeout net.Error
	if err != io.EOF {
		require.ErrorAs(h.t, err, &timeout)
		require.False(h.t, timeout.Timeout(), "the process lives on")
	}
}
