package main

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
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/websocket"
)

// tokenVariable is the environment variable with the token for a server.
const tokenVariable = "ACP_AGENT_TOKEN"

// newConnect returns the command that connects an editor to a server.
func newConnect(s streams, set *settings) *cobra.Command {
	var tokenFile string
	cmd := &cobra.Command{
		Use:   "connect URL [--token-file FILE]",
		Short: "Connect an editor to acp-agent serve",
		Long: `connect is an ACP agent for an editor, like acp-agent without a command, but passes
everything to the server at URL, such as wss://host:8765. The server and its agent see the folders
of its own machine.

The token is taken from the environment variable ` + tokenVariable + ` or from a file, which only you may
read.`,
		Example: "  acp-agent connect wss://agents.example.org --token-file ~/.acp-token",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s needs the URL of a server (got %d arguments)", words(cmd), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := serverURL(args[0])
			if err != nil {
				return err
			}
			token := strings.TrimSpace(os.Getenv(tokenVariable))
			if tokenFile != "" {
				if token, err = readToken(tokenFile, "acp-agent tokens add, on the server,"); err != nil {
					return err
				}
			}
			if token == "" {
				return usagef("a token is needed: set %s or use --token-file; on the server, acp-agent "+
					"tokens add prints one", tokenVariable)
			}
			if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
				return usagef("%s is not a token: it has a space, a line break or another character that "+
					"tokens do not have", tokenVariable)
			}
			if s.interactive() {
				return usagef("standard input is a terminal, but an editor is expected there: " +
					"configure it to start this command")
			}
			return connect(cmd.Context(), s, to, token, set.maxLine)
		},
	}
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "read the token from `FILE`")
	set.accept(cmd, "max-line")
	return cmd
}

// serverURL returns the URL of a server's connections.
func serverURL(given string) (string, error) {
	to, err := url.Parse(given)
	if err != nil || to.Host == "" {
		return "", usagef("%q is not the URL of a server: give one such as wss://host:8765, or "+
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
		return "", usagef("%q must begin with ws:// or wss://", given)
	case to.Scheme == "ws" && !secret.IsLoopback(to.Hostname()):
		return "", usagef("%s would send your token unencrypted: use wss://", given)
	case to.User != nil:
		return "", usagef("the URL must not contain a password: use %s", tokenVariable)
	}
	if to.Path == "" || to.Path == "/" {
		to.Path = websocket.Path
	}
	return to.String(), nil
}

// connect passes messages between the editor and a server until the server or ctx ends. When the
// editor has closed its end, the server answers what it has read and ends the connection.
func connect(ctx context.Context, s streams, to, token string, maxLine int) error {
	conn, err := websocket.Dial(ctx, to, token, maxLine, websocket.Times{})
	if err != nil {
		return fmt.Errorf("cannot connect to %s: %w%s", to, err, tlsHint(err))
	}
	defer conn.Close()
	l := link{server: conn, editor: s, maxLine: maxLine, open: map[string]bool{}}
	// A read from standard input cannot be interrupted: it ends with the program.
	fromEditor, fromServer := make(chan error, 1), make(chan error, 1)
	go func() { fromEditor <- l.passLines(ctx) }()
	go func() { fromServer <- l.passMessages(ctx) }()
	select {
	case err = <-fromServer:
	case err = <-fromEditor:
		if err != nil {
			_ = conn.Close()
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
	if err != nil {
		return &servingError{err}
	}
	return nil
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

// link passes messages between an editor and a server.
type link struct {
	server  *websocket.Conn
	editor  streams
	maxLine int

	mu   sync.Mutex
	open map[string]bool // the ids, in JSON, of requests that the server has not answered
	left bool            // the editor sends nothing more
}

// passLines sends the editor's lines to the server.
func (l *link) passLines(ctx context.Context) error {
	lines := jsonrpc.NewReader(l.editor.in, l.maxLine)
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
func (l *link) passMessages(ctx context.Context) error {
	for {
		message, err := l.server.Read(ctx)
		if err != nil {
			return l.end(err)
		}
		l.noteResponse(message)
		// Between the tokens of JSON, line breaks are white space.
		line := append(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), '\n')
		if _, err := l.editor.out.Write(line); err != nil {
			return err
		}
	}
}

func (l *link) noteRequest(line []byte) {
	id := strictjson.Find(line, "id")
	if id == nil || strictjson.Find(line, "method") == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[string(id)] = true
}

func (l *link) noteResponse(message []byte) {
	if strictjson.Find(message, "method") != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, string(strictjson.Find(message, "id")))
}

func (l *link) noteEnd() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
}

// end answers the open requests with the reason why nothing more can be read from the server, since
// many editors do not show why a program has ended. It returns nil if that is how it should be.
func (l *link) end(reason error) error {
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
		_, _ = l.editor.out.Write(append(strictjson.Encode(map[string]any{
			"jsonrpc": "2.0", "id": json.RawMessage(id), "error": answer,
		}), '\n'))
	}
	return reason
}
