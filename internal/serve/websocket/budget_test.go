package websocket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// Any number of messages that one user begins and does not finish take a limited memory, and hold
// up no other user. They do not hold up the same user for ever either.
//
// Clause N6.
func TestUnfinishedMessages(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	b := budget.New(budget.Limits{PerUser: 3 * size, Total: 8 * size, Message: size,
		Stall: 200 * time.Millisecond})
	url := serveWith(t, NewAcceptor(Times{Lost: time.Millisecond}, b), 2*size, func(*http.Request) {}, echo)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 20 {
		socket, _, err := dial(t.Context(), url, "ana", nil, time.Minute)
		require.NoError(t, err)
		defer socket.CloseNow()
		w, err := socket.Writer(ctx, websocket.MessageText)
		require.NoError(t, err)
		// The server reads as much as there is room for.
		go func() { _, _ = w.Write(make([]byte, size)) }()
	}
	require.Eventually(t, func() bool { return b.Used() >= size }, time.Minute, time.Millisecond)
	for _, user := range []string{"bob", "ana"} {
		for _, n := range []int{10, size} {
			err := echoes(t, url, user, n)
			for end := time.Now().Add(volume.Patience); errors.Is(err, ErrLost) &&
				time.Now().Before(end); {
				err = echoes(t, url, user, n) // a busy machine can make it stall too
			}
			require.NoError(t, err, "%s, %d bytes", user, n)
			require.LessOrEqual(t, b.Used(), 6*size)
		}
	}
}

// echoes sends n bytes over a new connection of user, and expects them back.
func echoes(t *testing.T, url, user string, n int) error {
	t.Helper()
	message := bytes.Repeat([]byte("x"), n)
	c, err := Dial(t.Context(), url, user, 2<<20, Times{})
	require.NoError(t, err)
	defer c.Close()
	if err := c.Write(t.Context(), message); err != nil {
		return err
	}
	echoed, err := c.Read()
	if err == nil {
		require.True(t, bytes.Equal(message, echoed))
	}
	return err
}

// What a connection holds is given back when it ends, read or not.
//
// Clause N6.
func TestRoomIsGivenBack(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	b := budget.New(budget.Limits{PerUser: 8 * size, Total: 8 * size, Message: size})
	served := make(chan Conn)
	url := serveWith(t, NewAcceptor(Times{}, b), 2*size, func(*http.Request) {}, func(c Conn) {
		served <- c
		<-served
	})
	for range 3 {
		c, err := Dial(t.Context(), url, "ana", 2*size, Times{})
		require.NoError(t, err)
		inServer := <-served
		written := make(chan error, 1)
		require.NoError(t, c.Write(t.Context(), make([]byte, size)))
		go func() { written <- c.Write(t.Context(), make([]byte, size)) }()
		require.Eventually(t, func() bool {
			in := &inServer.(*resumable).in
			in.mu.Lock()
			defer in.mu.Unlock()
			return in.large != nil
		}, time.Minute, time.Millisecond)
		for range 2 {
			_, err = inServer.Read()
			require.NoError(t, err)
			require.Equal(t, size, b.Used(), "the second one waits until the first one is handled")
		}
		require.NoError(t, <-written)
		inServer.StopRead()
		_, err = inServer.Read()
		require.Equal(t, io.EOF, err)
		require.Zero(t, b.Used(), "the second one is handled too")
		served <- nil
		_ = c.Close() // perhaps after the server
		require.Eventually(t, func() bool { return b.Used() == 0 }, time.Minute, time.Millisecond)
	}
}

// What clients do not read is limited for each user too, and holds up no other user.
//
// Clause N6.
func TestUnreadMessages(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	b := budget.New(budget.Limits{PerUser: 4 << 20, Total: 8 << 20, Message: size})
	served := make(chan Conn)
	url := serveWith(t, NewAcceptor(Times{Lost: time.Millisecond}, b), size, func(*http.Request) {},
		func(c Conn) {
			served <- c
			for c.Write(t.Context(), make([]byte, size)) == nil {
			}
		})
	var first Conn
	for i := range 10 {
		c := dialed(t, url, size, Times{})
		<-served
		if i == 0 {
			first = c
		}
	}
	require.Eventually(t, func() bool { return b.Used() > 3<<20 }, time.Minute, time.Millisecond)
	c, err := Dial(t.Context(), url, "bob", size, Times{})
	require.NoError(t, err)
	<-served
	for _, reader := range []Conn{c, first} {
		for range 200 {
			_, err := reader.Read()
			require.NoError(t, err)
			require.LessOrEqual(t, b.Used(), 8<<20)
		}
	}
	require.NoError(t, c.Close())
}
