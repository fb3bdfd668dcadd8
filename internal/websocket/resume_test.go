package websocket

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/cable"
)

// Both sides send while the connection is cut again and again: each message arrives once, in order.
func TestMessagesSurviveCuts(t *testing.T) {
	t.Parallel()
	const messages = 1500
	send := func(c *Conn) error {
		for i := range messages {
			text := strconv.Itoa(i) + strings.Repeat(" ", rand.IntN(2000))
			if err := c.Write(context.Background(), []byte(text)); err != nil {
				return err
			}
		}
		return c.CloseWrite(context.Background())
	}
	receive := func(c *Conn) (n int, err error) {
		for ; ; n++ {
			m, err := c.Read(context.Background())
			if err != nil {
				return n, err
			}
			if got := strings.TrimSpace(string(m)); got != strconv.Itoa(n) {
				return n, &net.ParseError{Type: "message", Text: got}
			}
		}
	}
	failed := make(chan error, 2)
	received, finish := make(chan int, 1), make(chan struct{})
	url := serve(t, 1<<20, Times{Lost: time.Minute}, func(c *Conn) {
		sent := make(chan error, 1)
		go func() { sent <- send(c) }()
		n, err := receive(c)
		received <- n
		if err != io.EOF {
			failed <- err
		}
		if err := <-sent; err != nil {
			failed <- err
		}
		<-finish // the client closes first
	})
	wire := cable.Lay(t, url)
	c, err := Dial(t.Context(), wire.URL, "ana", 1<<20, Times{Lost: time.Minute})
	require.NoError(t, err)
	done := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(5+rand.IntN(20)) * time.Millisecond):
				wire.Cut()
			}
		}
	})
	sent := make(chan error, 1)
	go func() { sent <- send(c) }()
	n, err := receive(c)
	require.Equal(t, io.EOF, err)
	require.Equal(t, messages, n)
	require.NoError(t, <-sent)
	require.Equal(t, messages, <-received)
	close(done)
	cutting.Wait()
	require.NoError(t, firstOf(failed))
	_ = c.Close()
	close(finish)
}

func firstOf(errs chan error) error {
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

func TestOnlyTheUserResumes(t *testing.T) {
	accepted := make(chan *Conn, 1)
	url := serve(t, 100, Times{}, func(c *Conn) {
		accepted <- c
		_, _ = c.Read(t.Context())
	})
	c, err := Dial(t.Context(), url, "ana", 100, Times{})
	require.NoError(t, err)
	defer c.Close()
	for name, header := range map[string][]string{
		"bob": {c.id, "0"}, "ana": {"another", "0"}, "anna": {c.id, "x"},
	} {
		_, _, err = dial(t.Context(), url, name, map[string][]string{idHeader: header[:1], receivedHeader: header[1:]})
		require.Equal(t, &RefusedError{Status: 410, Message: "there is no such connection any more"}, err, name)
	}
	require.NoError(t, c.Write(t.Context(), []byte("still there")))
}

// A server does not wait for ever.
func TestLostConnectionEnds(t *testing.T) {
	ended := make(chan error, 1)
	url := serve(t, 100, Times{Lost: 20 * time.Millisecond}, func(c *Conn) {
		_, err := c.Read(t.Context())
		ended <- err
	})
	wire := cable.Lay(t, url)
	c, err := Dial(t.Context(), wire.URL, "ana", 100, Times{Lost: 300 * time.Millisecond})
	require.NoError(t, err)
	defer c.Close()
	wire.Pull()
	require.ErrorIs(t, <-ended, errLost)
	_, err = c.Read(t.Context())
	require.ErrorIs(t, err, errLost)
	require.ErrorIs(t, c.Write(t.Context(), []byte("x")), errLost)
}

// What is not confirmed is kept up to a limit: Write waits.
func TestWriteWaitsForConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn("id", true, 100, Times{})
		large := make([]byte, maxUnconfirmed)
		require.NoError(t, c.Write(t.Context(), large))
		written := make(chan error, 1)
		go func() { written <- c.Write(t.Context(), []byte("x")) }()
		synctest.Wait()
		require.Empty(t, written)
		require.False(t, c.confirmed(2))
		require.True(t, c.confirmed(1))
		require.NoError(t, <-written)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, c.Write(t.Context(), large))
		cancel()
		require.ErrorIs(t, c.Write(ctx, []byte("x")), context.Canceled)
		require.NoError(t, c.Close())
	})
}
