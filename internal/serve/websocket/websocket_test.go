package websocket

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/cable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns the URL of a server that passes each of its connections to handle. Users who have a
// token are named like it.
func serve(t testing.TB, max int, times Times, handle func(Conn)) string {
	return serveWith(t, NewAcceptor(times, nil), max, func(*http.Request) {}, handle)
}

// serveWith is serve with an Acceptor, behind something that sees each request first, and may change
// it.
func serveWith(
	t testing.TB, a *Acceptor, max int, before func(*http.Request), handle func(Conn),
) string {
	var (
		mu       sync.Mutex
		accepted []Conn
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r)
		user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || user == "nobody" {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		if ResumedID(r) != "" {
			_ = a.Resume(w, r, user)
			return
		}
		c, err := a.Accept(w, r, user, max)
		if err != nil {
			return
		}
		defer c.Close()
		mu.Lock()
		accepted = append(accepted, c)
		mu.Unlock()
		handle(c)
	}))
	t.Cleanup(func() {
		server.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range accepted { // it may wait for a client that was cut off
			c.(interface{ finish(error) }).finish(ErrLost)
		}
	})
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// echo sends back what it reads, until there is nothing more.
func echo(c Conn) {
	for {
		m, err := c.Read()
		if err != nil || c.Write(context.Background(), m) != nil {
			return
		}
	}
}

// dialed returns a connection of Ana, which is closed with the test.
func dialed(t testing.TB, url string, max int, times Times) Conn {
	t.Helper()
	c, err := Dial(t.Context(), url, "ana", max, times)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// reads reads the next message, which must be want.
func reads(t testing.TB, c Conn, want string) {
	t.Helper()
	m, err := c.Read()
	require.NoError(t, err)
	require.Equal(t, want, string(m))
}

// stillThere checks that a message is echoed.
func stillThere(t testing.TB, c Conn) {
	t.Helper()
	require.NoError(t, c.Write(t.Context(), []byte("still there?")))
	reads(t, c, "still there?")
}

// serveOnce returns the URL of a server that reads one message of a connection, and how that ended.
func serveOnce(t testing.TB, times Times) (url string, ended <-chan error) {
	done := make(chan error, 1)
	return serve(t, 100, times, func(c Conn) {
		_, err := c.Read()
		done <- err
	}), done
}

// otherClient connects as a client that is not acp-agent.
func otherClient(t testing.TB, url string) *websocket.Conn {
	t.Helper()
	socket, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: http.Header{
		"Authorization": {"Bearer ana"},
	}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.CloseNow() })
	return socket
}

// The other side learns that a connection was closed, and does not try to resume it.
func TestCloseIsNotALoss(t *testing.T) {
	url := serve(t, 100, Times{}, func(c Conn) { _ = c.Write(t.Context(), []byte("bye")) })
	for range 100 {
		c, err := Dial(t.Context(), url, "ana", 100, Times{})
		require.NoError(t, err)
		reads(t, c, "bye")
		_, err = c.Read()
		require.Equal(t, io.EOF, err)
		require.NoError(t, c.Close())
	}
}

// A message that the other side does not accept ends the connection, which would otherwise be
// resumed to send it again.
func TestMessageOverTheLimit(t *testing.T) {
	url, ended := serveOnce(t, Times{})
	c := dialed(t, url, 1000, Times{})
	require.NoError(t, c.Write(t.Context(), make([]byte, 200)))
	_, err := c.Read()
	require.ErrorIs(t, err, errTooLarge)
	require.ErrorIs(t, <-ended, errTooLarge)
}

func TestConnectionIsRefused(t *testing.T) {
	_, err := Dial(t.Context(), serve(t, 100, Times{}, echo), "nobody", 100, Times{})
	require.Equal(t, &refusedError{Status: 401, Message: "no token"}, err)
	require.EqualError(t, err, "the server answered 401 Unauthorized: no token")
}

// A redirect could lead the token to another server, or past TLS.
func TestRedirectIsNotFollowed(t *testing.T) {
	asked := make(chan struct{}, 1)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/acp", http.StatusMovedPermanently))
	defer server.Close()
	_, err := Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), "ana", 100, Times{})
	require.Equal(t, &refusedError{301, "connect to " + elsewhere.URL + "/acp instead"}, err)
	require.Empty(t, asked)
}

func TestServerThatDoesNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, err = Dial(t.Context(), "ws://"+listener.Addr().String(), "ana", 100, Times{Dial: 50 * time.Millisecond})
	require.EqualError(t, err, "no answer within 50ms")
}

// Another client that is not there any more is noticed, and one that has nothing to say is not
// lost.
func TestOtherClientsAreAsked(t *testing.T) {
	ended := make(chan struct{})
	url := serve(t, 100, Times{Ping: 20 * time.Millisecond}, func(c Conn) {
		defer close(ended)
		_, _ = c.Read()
	})
	wire := cable.Lay(t, url)
	pings := make(chan struct{}, 10)
	socket, _, err := websocket.Dial(t.Context(), wire.URL, &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer ana"}},
		OnPingReceived: func(context.Context, []byte) bool {
			pings <- struct{}{}
			return true
		},
	})
	require.NoError(t, err)
	defer socket.CloseNow()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		_, _, _ = socket.Read(t.Context())
	}()
	for range 5 {
		<-pings
	}
	wire.Clog()
	<-ended
	_ = socket.CloseNow()
	<-reading
}

// A client that is gone is noticed even while what it sent cannot be kept. Another acp-agent waits
// for confirmations: one that does not is not waited for.
func TestClientThatSentTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		times   Times
		connect func(url string) *websocket.Conn
		want    error
	}{
		"another": {Times{Ping: 20 * time.Millisecond},
			func(url string) *websocket.Conn { return otherClient(t, url) }, ErrLost},
		"acp-agent": {Times{}, func(url string) *websocket.Conn {
			socket, _, err := dial(t.Context(), url, "ana", nil, time.Minute)
			require.NoError(t, err)
			return socket
		}, errUnasked},
	} {
		ended := make(chan error, 1)
		socket := c.connect(serve(t, window, c.times, func(c Conn) {
			<-c.Context().Done()
			ended <- context.Cause(c.Context())
		}))
		for range 2 {
			// The server may notice before everything is written.
			_ = socket.Write(t.Context(), websocket.MessageText, make([]byte, window))
		}
		require.ErrorIs(t, <-ended, c.want, name)
		_ = socket.CloseNow()
	}
}

// Many small messages may be waiting, so they take no more memory than they need.
func TestSmallMessagesTakeLittle(t *testing.T) {
	c := dialed(t, serve(t, 1000, Times{}, echo), 1000, Times{})
	for _, length := range []int{1, 100, 1000} {
		require.NoError(t, c.Write(t.Context(), make([]byte, length)))
		echoed, err := c.Read()
		require.NoError(t, err)
		require.Len(t, echoed, length)
		require.LessOrEqual(t, cap(echoed), 2*length+8)
	}
}

func TestBinaryMessagesAreRefused(t *testing.T) {
	url, ended := serveOnce(t, Times{})
	socket := otherClient(t, url)
	require.NoError(t, socket.Write(t.Context(), websocket.MessageBinary, []byte("{}")))
	_, _, err := socket.Read(t.Context())
	require.Equal(t, websocket.StatusUnsupportedData, websocket.CloseStatus(err))
	require.ErrorIs(t, <-ended, errNotText)
}

// What others send is read as it is: only acp-agent's own protocol has messages without content.
func TestOtherClients(t *testing.T) {
	read := make(chan string, 2)
	url := serve(t, 10, Times{}, func(c Conn) {
		for {
			m, err := c.Read()
			if err != nil {
				read <- "error: " + err.Error()
				return
			}
			read <- string(m)
		}
	})
	for sent, want := range map[string]string{"": "", "1234567890": "1234567890", "12345678901": "error: "} {
		socket := otherClient(t, url)
		require.NoError(t, socket.Write(t.Context(), websocket.MessageText, []byte(sent)))
		require.Contains(t, <-read, want)
		_ = socket.CloseNow()
		if want != "error: " {
			require.Contains(t, <-read, "error: ")
		}
	}
}

// What has arrived and is not read when a server stops reading is for the next server.
func TestStopRead(t *testing.T) {
	t.Parallel()
	arrived := make(chan Conn, 1)
	url := serveWith(t, NewAcceptor(Times{}, nil), 1<<20, func(*http.Request) {}, func(c Conn) {
		first, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, "first", string(first))
		require.Eventually(t, func() bool {
			received, read := c.(*resumable).in.counts()
			return received-read == 1
		}, time.Minute, time.Millisecond)
		c.StopRead()
		_, err = c.Read()
		require.ErrorIs(t, err, io.EOF)
		_ = c.Close()
		arrived <- c
	})
	c, err := Dial(t.Context(), url, "ana", 1<<20, Times{})
	require.NoError(t, err)
	require.NoError(t, c.Write(t.Context(), []byte("first")))
	require.NoError(t, c.Write(t.Context(), []byte("second")))
	_, err = c.Read()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, [][]byte{[]byte("second")}, c.Unread())
	require.NoError(t, c.Close())
	<-arrived
}

// Confirmations that confirm nothing wait for each other, and none ends the connection.
func TestIdleConfirmationsAreSlow(t *testing.T) {
	t.Parallel()
	const many = 3 * idlePerSecond
	c := dialed(t, serve(t, 100, Times{}, echo), 100, Times{})
	begun := time.Now()
	for range idleAtOnce + many {
		require.NoError(t, c.(*resumable).current().Write(t.Context(), websocket.MessageBinary, make([]byte, 8)))
	}
	require.NoError(t, c.Write(t.Context(), []byte("x")))
	reads(t, c, "x")
	require.GreaterOrEqual(t, time.Since(begun), 2*time.Second)
}
