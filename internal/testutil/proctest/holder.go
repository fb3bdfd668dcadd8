package proctest

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds waits for what must happen.
const patience = 30 * time.Second

const (
	watchVariable = "ACP_AGENT_TEST_WATCH"
	greeting      = "here\n"
)

// Hold shows the test that watches this process, if one does, that it lives: until the process ends there is a
// connection between them.
func Hold() error {
	if os.Getenv(watchVariable) == "" {
		return nil
	}
	connection, err := greet()
	if err == nil {
		go io.Copy(io.Discard, connection) // what nobody refers to is closed
	}
	return err
}

// HoldOn is [Hold], and stays until the test is over or the process is killed. It returns the exit status of a process
// that does nothing else, which fails if nobody watches.
func HoldOn() int {
	connection, err := greet()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = io.Copy(io.Discard, connection)
	return 0
}

func greet() (net.Conn, error) {
	connection, err := net.Dial("tcp", os.Getenv(watchVariable))
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(connection, greeting)
	return connection, err
}

// Holders are processes that a test watches. Its methods fail the test, and are for one goroutine at a time.
type Holders struct {
	t        testing.TB
	listener *net.TCPListener
}

// Watch begins to watch processes, until the test is over.
func Watch(t testing.TB) *Holders {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return &Holders{t, listener}
}

// Env is the variable, as "NAME=VALUE", by which a process that holds finds the test.
func (h *Holders) Env() string { return watchVariable + "=" + h.listener.Addr().String() }

// Next waits for the next process that holds.
func (h *Holders) Next() Holder {
	h.t.Helper()
	connection := h.accept()
	require.NoError(h.t, connection.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.ReadFull(connection, make([]byte, len(greeting)))
	require.NoError(h.t, err)
	return Holder{h.t, connection}
}

// None fails if a process has begun to hold that Next has not returned.
func (h *Holders) None() {
	h.t.Helper()
	ours, err := net.Dial("tcp", h.listener.Addr().String())
	require.NoError(h.t, err)
	defer ours.Close()
	// Connections are accepted in their order, so that whoever came before us would be the next.
	require.Equal(h.t, ours.LocalAddr().String(), h.accept().RemoteAddr().String(), "somebody came")
}

func (h *Holders) accept() net.Conn {
	h.t.Helper()
	require.NoError(h.t, h.listener.SetDeadline(time.Now().Add(patience)))
	connection, err := h.listener.Accept()
	require.NoError(h.t, err, "nobody came")
	h.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// Holder is a process that has begun to hold.
type Holder struct {
	t          testing.TB
	connection net.Conn
}

// Ended waits for the end of the process.
func (h Holder) Ended() {
	h.t.Helper()
	require.NoError(h.t, h.connection.SetReadDeadline(time.Now().Add(patience)))
	_, err := h.connection.Read(make([]byte, 1))
	require.Error(h.t, err)
	require.NotErrorIs(h.t, err, os.ErrDeadlineExceeded, "the process lives on")
}
