package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/secret"
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
			token := os.Getenv(tokenVariable)
			if tokenFile != "" {
				if token, err = readToken(tokenFile); err != nil {
					return err
				}
			}
			if token == "" {
				return usagef("a token is needed: set %s or use --token-file; on the server, acp-agent "+
					"tokens add prints one", tokenVariable)
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
	if err != nil {
		return "", usagef("%q is not a URL", given)
	}
	switch to.Scheme {
	case "http":
		to.Scheme = "ws"
	case "https":
		to.Scheme = "wss"
	}
	switch {
	case to.Scheme != "ws" && to.Scheme != "wss" || to.Host == "":
		return "", usagef("%q is not the URL of a server, such as wss://host:8765", given)
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
		return fmt.Errorf("cannot connect to %s: %w", to, err)
	}
	defer conn.Close()
	// A read from standard input cannot be interrupted: it ends with the program.
	fromEditor, fromServer := make(chan error, 1), make(chan error, 1)
	go func() { fromEditor <- passLines(ctx, s.in, conn, maxLine) }()
	go func() { fromServer <- passMessages(ctx, conn, s.out) }()
	select {
	case err = <-fromServer:
		if err == nil {
			err = errors.New("the server closed the connection")
		}
	case err = <-fromEditor:
		if err == nil {
			const answering = 5 * time.Second
			select {
			case err = <-fromServer:
			case <-time.After(answering):
			}
		}
	case <-ctx.Done():
	}
	if err != nil {
		return &servingError{err}
	}
	return nil
}

// passLines sends lines to a server.
func passLines(ctx context.Context, in io.Reader, to *websocket.Conn, maxLine int) error {
	lines := jsonrpc.NewReader(in, maxLine)
	for {
		line, err := lines.Append(nil)
		if errors.As(err, new(*jsonrpc.TooLongError)) {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			err = errors.Join(to.Write(ctx, line), err)
		}
		if errors.Is(err, io.EOF) {
			return to.CloseWrite(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// passMessages writes the messages of a server to out, as lines.
func passMessages(ctx context.Context, from *websocket.Conn, out io.Writer) error {
	for {
		message, err := from.Read(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// Between the tokens of JSON, line breaks are white space.
		line := append(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
}
