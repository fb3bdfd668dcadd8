package serve

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// TokenVariable is the environment variable with the token for a server.
const TokenVariable = "ACP_AGENT_TOKEN"

// ParseURL returns the URL of a server's connections.
func ParseURL(given string) (string, error) {
	to, err := url.Parse(given)
	if err != nil || to.Host == "" {
		return "", fmt.Errorf("%q is not the URL of a server: give one such as wss://host:8765, "+
			"or ws://127.0.0.1:8765 for a server without TLS on this machine", given)
	}
	switch to.Scheme {
	case "http":
		to.Scheme = "ws"
	case "https":
		to.Scheme = "wss"
	}
	switch {
	case to.Scheme != "ws" && to.Scheme != "wss":
		return "", fmt.Errorf("%q must begin with ws:// or wss://", given)
	case to.Scheme == "ws" && !secret.IsLoopback(to.Hostname()):
		return "", fmt.Errorf("%s would send your token unencrypted: use wss://", given)
	case to.User != nil:
		return "", fmt.Errorf("the URL must not contain a password: use %s", TokenVariable)
	}
	if to.Path == "" || to.Path == "/" {
		to.Path = Path
	}
	return to.String(), nil
}

var tokenOfUser = text.Pattern(`^([a-z0-9][-+_.@a-z0-9]*)\.[A-Z2-7]{26}$`)

// withUser returns the URL of a server with the user of a token in its query, so that a proxy can
// send all connections of a user to one server. What is not a token of acp-agent names nobody.
func withUser(to, token string) string {
	u, err := url.Parse(to)
	parts := tokenOfUser().FindStringSubmatch(token)
	if err != nil || parts == nil {
		return to
	}
	q := u.Query()
	q.Set("user", parts[1])
	u.RawQuery = q.Encode()
	return u.String()
}

// Link passes messages between an editor and a server. When the server ends, and other servers take
// its place, the link continues with one of them; see handover.go.
type Link struct {
	dial     func(context.Context) (websocket.Conn, error)
	patience time.Duration // how long to wait for another server
	maxLine  int

	// Pass sets these.
	out io.Writer          // to the editor
	end context.CancelFunc // ends Pass

	// Used by passMessages only.
	handedOver time.Time // when a hand-over has succeeded last
	inRow      int       // hand-overs up to that one, each within steady of the one before

	lines   chan []byte     // from the editor, for sendTo; closed when the editor sends no more
	leaving context.Context // ends when lines is closed
	leave   context.CancelFunc
	said    conversation

	mu     sync.Mutex
	server websocket.Conn // the last one
}

// Dial connects to the server with the URL to, as [ParseURL] returns it, and authenticates with a
// token. Messages have up to maxLine bytes.
func Dial(ctx context.Context, to, token string, maxLine int) (*Link, error) {
	dial := func(ctx context.Context) (websocket.Conn, error) {
		return websocket.Dial(ctx, withUser(to, token), token, maxLine, websocket.Times{})
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w%s", to, err, hintFor(err))
	}
	const patience = 2 * time.Minute
	leaving, leave := context.WithCancel(context.Background())
	return &Link{leaving: leaving, leave: leave, dial: dial, patience: patience, server: conn,
		maxLine: maxLine, lines: make(chan []byte, maxWaiting), said: conversation{
			open: make(map[string]json.RawMessage), sessions: make(map[string]json.RawMessage),
		}}, nil
}

// Pass passes lines from the editor to the server and messages from the server to the editor until
// the server or ctx ends, and closes the connection. When the editor has closed its end, the server
// answers what it has read and ends the connection.
func (l *Link) Pass(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	ctx, l.end = context.WithCancel(ctx)
	defer l.end()
	defer l.close()
	l.out = out
	fromServer, failed := make(chan error, 1), make(chan error, 1)
	go func() { // A read from standard input cannot be interrupted: it ends with the program.
		if err := l.passLines(ctx, in); err != nil {
			failed <- err
		}
	}()
	go func() { fromServer <- l.passMessages(ctx) }()
	select {
	case err = <-fromServer:
	case err = <-failed:
		l.end()
		l.close()
		<-fromServer
	case <-ctx.Done():
	}
	return err
}

func (l *Link) close() {
	l.mu.Lock()
	server := l.server
	l.mu.Unlock()
	_ = server.Close()
}

// hintFor says what to do if the host is unknown, no server or another one listens, only one side
// uses TLS, or the certificate is not trusted.
func hintFor(err error) string {
	switch {
	case errors.As(err, new(*net.DNSError)):
		return "; check the name of the host, and that this machine is online"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "; is acp-agent serve running there? Without --listen its address is 127.0.0.1:8765"
	case strings.Contains(err.Error(), "404"):
		return "; the path of acp-agent serve is " + Path
	case errors.Is(err, http.ErrSchemeMismatch):
		return "; if the server has no certificate, use ws://"
	case strings.Contains(err.Error(), "HTTP request to an HTTPS server"):
		return "; use wss://"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "; if the certificate is your own, have this system trust it (on Linux, " +
			"SSL_CERT_FILE can name its file)"
	}
	return ""
}

// passLines reads the editor's lines for sendTo, until ctx ends or there are no more.
func (l *Link) passLines(ctx context.Context, in io.Reader) error {
	lines := jsonrpc.NewReader(in, l.maxLine)
	for {
		line, err := lines.Append(nil)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			select {
			case l.lines <- line:
			case <-ctx.Done():
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			l.leave()
			close(l.lines)
			return nil
		}
	}
}

// sendTo sends the editor's lines to a server. At the end it tells the server that nothing more
// will be sent, and ends the link if the server does not do so in time. It ends with ctx or the
// connection. If sending fails, passFrom learns why.
func (l *Link) sendTo(ctx context.Context, server websocket.Conn) {
	const answering = 5 * time.Second
	lines := l.lines
	var late <-chan time.Time
	for ctx.Err() == nil && server.Context().Err() == nil {
		select {
		case line, ok := <-lines:
			if !ok {
				_ = server.CloseWrite(ctx)
				lines, late = nil, time.After(answering)
			} else if line = l.said.fromEditor(line); line != nil {
				_ = server.Write(ctx, line)
			}
		case <-late:
			l.end()
		case <-ctx.Done():
		case <-server.Context().Done():
		}
	}
}

// passMessages passes on what the servers send. At the end it answers the open requests. The server
// may close the connection when the editor has left.
func (l *Link) passMessages(ctx context.Context) error {
	server := l.server // which changes only here
	for {
		reason := l.passFrom(ctx, server)
		if l.canHandOver(ctx, reason) {
			server, reason = l.handOver(ctx, server, reason)
		}
		switch {
		case reason == nil:
		case l.leaving.Err() != nil && errors.Is(reason, errClosed):
			return nil
		default:
			// Many editors do not show why a program has ended.
			l.answerOpen("%v; start the agent again and load the session", reason)
			return reason
		}
	}
}

// passFrom writes the messages of a server to the editor, as lines, while sendTo sends those of
// the editor. It returns why there are no more.
func (l *Link) passFrom(ctx context.Context, server websocket.Conn) error {
	ctx, stop := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() { l.sendTo(ctx, server) })
	defer sending.Wait()
	defer stop()
	for {
		message, err := server.Read()
		switch {
		case errors.Is(err, io.EOF):
			return errClosed
		case err != nil:
			return err
		}
		if err := l.toEditor(message); err != nil {
			return err
		}
		if l.said.isHeld() {
			_ = server.Close()
		}
	}
}

// toEditor writes a message of the server to the editor.
func (l *Link) toEditor(message []byte) error {
	if message = l.said.fromServer(message); message == nil {
		return nil
	}
	// Between the tokens of JSON, line breaks are white space.
	line := append(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), '\n')
	_, err := l.out.Write(line)
	return err
}

// errClosed is the reason of an end that the server has wanted.
var errClosed = errors.New("the server closed the connection")

// answerOpen answers the open requests with an error.
func (l *Link) answerOpen(format string, args ...any) {
	answer := jsonrpc.Errorf(jsonrpc.CodeInternal, format, args...)
	for _, id := range l.said.takeOpen() {
		_, _ = l.out.Write(append(strictjson.Encode(map[string]any{
			"jsonrpc": "2.0", "id": json.RawMessage(id), "error": answer,
		}), '\n'))
	}
}
