package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/serve/budget"
	"github.com/acp-agent/acp-agent/internal/test/cable"
)

// Both sides send numbered messages while the connection is cut again and again: each arrives once,
// in order.
func TestMessagesSurviveCuts(t *testing.T) {
	t.Parallel()
	const messages = 1500
	send := func(c Conn) error {
		for i := range messages {
			text := strconv.Itoa(i) + strings.Repeat(" ", rand.IntN(2000))
			if err := c.Write(context.Background(), []byte(text)); err != nil {
				return err
			}
		}
		return c.CloseWrite(context.Background())
	}
	receive := func(c Conn) error {
		for n := 0; ; n++ {
			m, err := c.Read()
			if err == io.EOF && n == messages {
				return nil
			}
			if err != nil {
				return fmt.Errorf("after %d messages: %w", n, err)
			}
			if got := strings.TrimSpace(string(m)); got != strconv.Itoa(n) {
				return fmt.Errorf("message %d is %s", n, got)
			}
		}
	}
	both := func(c Conn) error {
		sent := make(chan error, 1)
		go func() { sent <- send(c) }()
		return errors.Join(receive(c), <-sent)
	}
	ended, finish := make(chan error, 2), make(chan struct{})
	url := serve(t, 1<<20, Times{Lost: time.Minute}, func(c Conn) {
		ended <- both(c)
		<-finish // a cut while the server closes would be a loss
	})
	wire := cable.Lay(t, url)
	c := dialed(t, wire.URL, 1<<20, Times{Lost: time.Minute})
	go func() { ended <- both(c) }()
	for over := 0; over < 2; {
		select {
		case err := <-ended:
			require.NoError(t, err)
			over++
		case <-time.After(time.Duration(5+rand.IntN(20)) * time.Millisecond):
			wire.Cut()
		}
	}
	close(finish)
}

// A message takes as long as it takes: while some of it arrives, the connection is not lost.
func TestLargeMessageOverASlowNetwork(t *testing.T) {
	const size = 8 << 20
	times := Times{Ping: 150 * time.Millisecond} // the message takes half a second
	url := serve(t, 2*size, times, echo)
	wire := cable.Lay(t, url)
	wire.Slow.Store(true)
	c := dialed(t, wire.URL, 2*size, times)
	message := bytes.Repeat([]byte("x"), size)
	require.NoError(t, c.Write(t.Context(), message))
	echoed, err := c.Read()
	require.NoError(t, err)
	require.True(t, bytes.Equal(message, echoed))
}

// A network that loses everything is noticed.
func TestConnectionThatPassesNothing(t *testing.T) {
	times := Times{Ping: 20 * time.Millisecond}
	url := serve(t, 100, times, echo)
	wire := cable.Lay(t, url)
	c := dialed(t, wire.URL, 100, times)
	for range 3 {
		wire.Clog()
		stillThere(t, c)
	}
}

// A proxy that is configured or ended says so to both sides: that is no end of the connection.
func TestProxyGoesAway(t *testing.T) {
	accepted := make(chan Conn, 1)
	url := serve(t, 100, Times{}, func(c Conn) {
		accepted <- c
		echo(c)
	})
	c := dialed(t, url, 100, Times{})
	inServer := (<-accepted).(*resumable)
	for range 3 {
		require.Eventually(t, func() bool { return inServer.current() != nil }, time.Minute, time.Millisecond)
		_ = inServer.current().Close(websocket.StatusGoingAway, "")
		stillThere(t, c)
	}
}

// Two requests to resume a connection may cross: what arrives over the socket of the first one, when
// the second one has been told what was received, does not arrive again.
func TestCrossedResumptions(t *testing.T) {
	sockets := make(chan *websocket.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := accept(w, r)
		if err == nil {
			sockets <- socket
		}
	}))
	defer server.Close()
	c := newResumable(side{max: 100, maxUnread: maxUnread, times: Times{}.withDefaults()}, (*resumable).await)
	defer c.Close()
	told := c.detach()
	for range 2 {
		client, _, err := dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), "ana", nil, time.Minute)
		require.NoError(t, err)
		c.attach(<-sockets, 0, told)
		_ = client.Write(t.Context(), websocket.MessageText, []byte("x"))
		require.NoError(t, client.CloseNow())
		require.Eventually(t, func() bool { return c.current() == nil }, time.Minute, time.Millisecond)
	}
	received, _ := c.in.counts()
	require.EqualValues(t, 1, received)
}

func TestOnlyTheUserResumes(t *testing.T) {
	accepted := make(chan Conn, 1)
	url := serve(t, 100, Times{}, func(c Conn) {
		accepted <- c
		_, _ = c.Read()
	})
	c := dialed(t, url, 100, Times{})
	for name, header := range map[string][]string{
		"bob": {c.ID(), "0"}, "ana": {"another", "0"}, "anna": {c.ID(), "x"},
	} {
		_, _, err := dial(t.Context(), url, name,
			map[string][]string{idHeader: header[:1], receivedHeader: header[1:]}, time.Minute)
		require.Equal(t, &refusedError{Status: 410, Message: "the server no longer has this connection"}, err, name)
	}
	require.NoError(t, c.Write(t.Context(), []byte("still there")))
}

// One attempt to connect again that is not answered does not take the time of all.
func TestAttemptWithoutAnswer(t *testing.T) {
	var resumed atomic.Int32
	url := serveWith(t, NewAcceptor(Times{}, nil), 100, func(r *http.Request) {
		if r.Header.Get(idHeader) != "" && resumed.Add(1) == 1 {
			<-r.Context().Done()
		}
	}, echo)
	wire := cable.Lay(t, url)
	c := dialed(t, wire.URL, 100, Times{Dial: 100 * time.Millisecond})
	wire.Cut()
	stillThere(t, c)
}

// Something between both sides may not know what resumes a connection.
func TestConnectionIsNotResumed(t *testing.T) {
	url := serveWith(t, NewAcceptor(Times{Lost: time.Millisecond}, nil), 100, func(r *http.Request) { r.Header.Del(idHeader) }, echo)
	wire := cable.Lay(t, url)
	c := dialed(t, wire.URL, 100, Times{})
	wire.Cut()
	_, err := c.Read()
	require.EqualError(t, err, "the connection was lost: the server answered 101 Switching Protocols: "+
		"the server did not resume the connection")
}

// A user who has lost connections can have others in their place, without losing any that is there,
// and nobody else loses any.
func TestLostConnectionMakesRoom(t *testing.T) {
	a := NewAcceptor(Times{Lost: time.Hour, Ping: time.Hour}, nil)
	accepted := make(chan Conn)
	ended := make(chan string, 4)
	url := serveWith(t, a, 100, func(*http.Request) {}, func(c Conn) {
		accepted <- c
		_, err := c.Read()
		ended <- fmt.Sprintf("%s: %v", c.ID(), err)
	})
	var inServer []*resumable
	for _, user := range []string{"ana", "bob", "ana", "ana"} {
		socket, _, err := dial(t.Context(), url, user, nil, time.Minute)
		require.NoError(t, err)
		c := (<-accepted).(*resumable)
		inServer = append(inServer, c)
		if len(inServer) == 4 {
			defer socket.CloseNow()
			break
		}
		require.NoError(t, socket.CloseNow())
		require.Eventually(t, func() bool { return c.current() == nil }, time.Minute, time.Millisecond)
	}
	for _, oldest := range []int{0, 2} {
		require.True(t, a.EndLost(t.Context(), "ana"))
		require.Equal(t, inServer[oldest].id+": "+errReplaced.Error(), <-ended)
	}
	require.False(t, a.EndLost(t.Context(), "ana"), "the last one is not lost")
	require.True(t, a.EndLost(t.Context(), "bob"))
	require.NotNil(t, inServer[3].current())
	inServer[3].finish(io.EOF)
}

// A server does not wait for ever.
func TestLostConnectionEnds(t *testing.T) {
	url, ended := serveOnce(t, Times{Lost: 20 * time.Millisecond})
	wire := cable.Lay(t, url)
	c := dialed(t, wire.URL, 100, Times{Lost: 300 * time.Millisecond})
	wire.Pull()
	require.ErrorIs(t, <-ended, ErrLost)
	_, err := c.Read()
	require.ErrorIs(t, err, ErrLost)
	require.ErrorIs(t, c.Write(t.Context(), []byte("x")), ErrLost)
}

// A connection is resumed while Write waits until the other side has read more.
func TestLostConnectionWhileWriteWaits(t *testing.T) {
	const size = 64 << 10
	const messages = 2 * window / size
	accepted := make(chan Conn, 1)
	url := serve(t, size, Times{Lost: 5 * time.Second}, func(c Conn) {
		accepted <- c
		for range messages {
			_ = c.Write(context.Background(), make([]byte, size))
		}
		_, _ = c.Read()
	})
	wire := cable.Lay(t, url)
	c := dialed(t, wire.URL, size, Times{})
	inServer := (<-accepted).(*resumable)
	require.Eventually(t, func() bool {
		inServer.out.mu.Lock()
		defer inServer.out.mu.Unlock()
		return inServer.out.room != nil
	}, time.Minute, time.Millisecond)
	wire.Cut()
	for range messages {
		_, err := c.Read()
		require.NoError(t, err)
	}
}

// A server keeps few messages that are not read, however small they are. A connection is resumed even
// while it has no room for the next one, which is large.
func TestLostConnectionWhileUnreadMessagesWait(t *testing.T) {
	const messages, size = 2 * maxUnread, 100 << 10
	b := budget.New(budget.Limits{Total: 2 * size, Message: 2 * size})
	accepted, read := make(chan Conn, 1), make(chan struct{})
	url := serveWith(t, NewAcceptor(Times{}, b), size, func(*http.Request) {}, func(c Conn) {
		accepted <- c
		<-read
		for i := range messages {
			message, err := c.Read()
			if err != nil || strings.TrimSpace(string(message)) != strconv.Itoa(i) {
				return
			}
		}
		_ = c.Write(context.Background(), []byte("all"))
		_, _ = c.Read()
	})
	wire := cable.Lay(t, url)
	c := dialed(t, wire.URL, 100, Times{})
	inServer := (<-accepted).(*resumable)
	for i := range messages {
		message := strconv.Itoa(i)
		if i == maxUnread {
			message += strings.Repeat(" ", size-len(message))
		}
		require.NoError(t, c.Write(t.Context(), []byte(message)))
	}
	require.Eventually(t, func() bool { return b.Used() == size }, time.Minute, time.Millisecond)
	before := inServer.current()
	wire.Cut()
	require.Eventually(t, func() bool {
		now := inServer.current()
		return now != nil && now != before
	}, time.Minute, time.Millisecond)
	time.Sleep(50 * time.Millisecond)
	received, _ := inServer.in.counts()
	require.EqualValues(t, maxUnread, received)
	close(read)
	message, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, "all", string(message))
}

// What is not confirmed is kept up to a limit: Write waits.
func TestWriteWaitsForConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newResumable(side{max: 100, times: Times{}.withDefaults()}, (*resumable).await)
		large := make([]byte, window)
		require.NoError(t, c.Write(t.Context(), large))
		written := make(chan error, 1)
		go func() { written <- c.Write(t.Context(), []byte("x")) }()
		synctest.Wait()
		require.Empty(t, written)
		ok, _ := c.out.confirm(2)
		require.False(t, ok)
		ok, isNew := c.out.confirm(1)
		require.True(t, ok && isNew)
		_, isNew = c.out.confirm(1)
		require.False(t, isNew)
		require.NoError(t, <-written)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, c.Write(t.Context(), large))
		cancel()
		require.ErrorIs(t, c.Write(ctx, []byte("x")), context.Canceled)
		require.NoError(t, c.Close())
	})
}
