package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/websocket"
)

// TokenVariable is the environment variable with the token for a server.
const TokenVariable = "ACP_AGENT_TOKEN"

// ParseURL returns the URL of a server's connections.
func ParseURL(given string) (string, error) {
	to, err := url.Parse(given)
	if err != nil || to.Host == "" {
		return "", fmt.Errorf("%q is not the URL of a server: give one such as wss://host:8765, or "+
			"ws://127.0.0.1:8765 for a server without TLS on this machine", given)
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
		to.Path = websocket.Path
	}
	return to.String(), nil
}

// Link passes messages between an editor and a server.
type Link struct {
	server  *websocket.Conn
	maxLine int
	out     io.Writer // to the editor

	mu   sync.Mutex
	open map[string]bool // the ids, in JSON, of requests that the server has not answered
	left bool            // the editor sends nothing more
}

// Dial connects to the server with the URL to, as [ParseURL] returns it, and authenticates with a
// token. Messages have up to maxLine bytes.
func Dial(ctx context.Context, to, token string, maxLine int) (*Link, error) {
	conn, err := websocket.Dial(ctx, to, token, maxLine, websocket.Times{})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w%s", to, err, tlsHint(err))
	}
	return &Link{server: conn, maxLine: maxLine, open: make(map[string]bool)}, nil
}

// Pass passes lines from the editor to the server and messages from the server to the editor until
// the server or ctx ends, and closes the connection. When the editor has closed its end, the server
// answers what it has read and ends the connection.
func (l *Link) Pass(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	defer l.server.Close()
	l.out = out
	// A read from standard input cannot be interrupted: it ends with the program.
	fromEditor, fromServer := make(chan error, 1), make(chan error, 1)
	go func() { fromEditor <- l.passLines(ctx, in) }()
	go func() { fromServer <- l.passMessages(ctx) }()
	select {
	case err = <-fromServer:
	case err = <-fromEditor:
		if err != nil {
			_ = l.server.Close()
			<-fromServer
			break
		}
		const answering = 5 * time.Second
		select {
		case err = <-fromServer:
		case <-time.After(answering):
		}
	case <-ctx.Done():
	}
	return err
}

// tlsHint says what to do if a server was asked for TLS that it does not have, or not asked for TLS
// that it has, or its certificate is not trusted.
func tlsHint(err error) string {
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "; if the server has no certificate, use ws://"
	case strings.Contains(err.Error(), "HTTP request to an HTTPS server"):
		return "; use wss://"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "; if the certificate is your own, have this system trust it (on Linux, SSL_CERT_FILE " +
			"can name its file)"
	}
	return ""
}

// passLines sends the editor's lines to the server.
func (l *Link) passLines(ctx context.Context, in io.Reader) error {
	lines := jsonrpc.NewReader(in, l.maxLine)
	for {
		line, err := lines.Append(nil)
		if errors.As(err, new(*jsonrpc.TooLongError)) {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.noteRequest(line)
			err = errors.Join(l.server.Write(ctx, line), err)
		}
		if errors.Is(err, io.EOF) {
			l.noteEnd()
			return l.server.CloseWrite(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// passMessages writes the server's messages to the editor, as lines. When there are no more, it
// answers the open requests. The server may close the connection when the editor has left.
func (l *Link) passMessages(ctx context.Context) error {
	for {
		message, err := l.server.Read(ctx)
		if err != nil {
			return l.end(err)
		}
		l.noteResponse(message)
		// Between the tokens of JSON, line breaks are white space.
		line := append(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), '\n')
		if _, err := l.out.Write(line); err != nil {
			return err
		}
	}
}

func (l *Link) noteRequest(line []byte) {
	id := strictjson.Find(line, "id")
	if id == nil || strictjson.Find(line, "method") == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[string(id)] = true
}

func (l *Link) noteResponse(message []byte) {
	if strictjson.Find(message, "method") != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, string(strictjson.Find(message, "id")))
}

func (l *Link) noteEnd() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
}

// end answers the open requests with the reason why nothing more can be read from the server, since
// many editors do not show why a program has ended. It returns nil if that is how it should be.
func (l *Link) end(reason error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(reason, io.EOF) {
		if l.left {
			return nil
		}
		reason = errors.New("the server closed the connection")
	}
	answer := jsonrpc.Errorf(jsonrpc.CodeInternal, "%v; start the agent again and load the session",
		reason)
	for id := range l.open {
		_, _ = l.out.Write(append(strictjson.Encode(map[string]any{
			"jsonrpc": "2.0", "id": json.RawMessage(id), "error": answer,
		}), '\n'))
	}
	return reason
}
