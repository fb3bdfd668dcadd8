package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpserver"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

type mcpFlags struct {
	roots     []string
	readRoots []string
	session   string // the socket of an acp-agent session that provides the roots
	within    []string
	http      string
	tokenFile string
	noAuth    bool
	anyRoot   bool
	readOnly  bool
	tellOnly  bool // only tell the session's model what is in the roots
}

func newMCP(set *settings) *cobra.Command {
	var m mcpFlags
	cmd := set.newCommand("mcp", noArgs, needsState, flags{"dir": &m.roots,
		"read-dir": &m.readRoots, "roots-from": &m.session, "tell-only": &m.tellOnly,
		"within": &m.within, "http": &m.http, "token-file": &m.tokenFile, "no-auth": &m.noAuth,
		"any-dir": &m.anyRoot, "read-only": &m.readOnly,
		"log-level": nil, "log-file": nil, "max-line": nil, "mounts": nil},
		func(cmd *cobra.Command, _ []string) error {
			if err := m.check(cmd); err != nil {
				return err
			}
			return serveMCP(cmd.Context(), set, m)
		})
	for _, flag := range []string{"roots-from", "tell-only"} {
		_ = cmd.Flags().MarkHidden(flag) // acp-agent adds it when it gives an agent this server
	}
	return cmd
}

// check reports flags that do not fit together.
func (m *mcpFlags) check(cmd *cobra.Command) error {
	if err := exclusive(cmd, "dir any-dir", "read-dir any-dir", "within any-dir",
		"token-file no-auth"); err != nil {
		return err
	}
	for _, flag := range []string{"token-file", "no-auth", "any-dir"} {
		if cmd.Flags().Changed(flag) && m.http == "" {
			return usage.Errorf("--%s is only used with --http", flag)
		}
	}
	if m.http != "" && len(m.roots)+len(m.readRoots) == 0 && len(m.within) == 0 && !m.anyRoot {
		return usage.Errorf(
			"--http lets clients choose any folder of yours as a root: limit them with " +
				"--dir DIR or --within DIR, or allow it with --any-dir")
	}
	return nil
}

func serveMCP(ctx context.Context, set *settings, m mcpFlags) error {
	if m.http == "" && set.interactive() {
		return usage.Errorf(
			"standard input is a terminal, but an MCP client is expected there: add the command " +
				"\"acp-agent mcp\" to it")
	}
	logger, closeLog, err := set.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	options, err := m.options(ctx, set, logger)
	if err != nil {
		return err
	}
	switch {
	case m.http == "" || m.noAuth:
	case m.tokenFile == "":
		options.Token = rand.Text()
	default: // HTTP clients must send it
		if options.Token, err = readToken(m.tokenFile, "openssl rand -hex 32"); err != nil {
			return err
		}
	}
	server, err := mcpserver.Open(ctx, options)
	if err != nil {
		return usage.WithFlagNames(err, "dir", "dir")
	}
	defer server.Close()
	if m.http != "" {
		listener, err := listenLoopback(ctx, "--http", m.http)
		if err != nil {
			return err
		}
		m.explainHTTP(set.streams, listener.Addr(), options.Token)
		return serveHTTP(ctx, listener, server.Handler())
	}
	return server.Serve(ctx, set.in, set.out)
}

func (m mcpFlags) options(
	ctx context.Context, set *settings, logger *slog.Logger,
) (o mcpserver.Options, err error) {
	o = mcpserver.Options{
		Version: ownVersion().Number, MaxMessage: set.maxLine, Logger: logger,
	}
	if o.Workspace, err = set.workspace(); err != nil {
		return o, err
	}
	if !m.readOnly {
		o.Permit = permit
	}
	o.Guard = set.guard
	if m.session != "" {
		m.follow(ctx, &o)
	}
	if o.Roots, err = rootsOf(slices.Concat(m.roots, m.readRoots)); err != nil {
		return o, usage.WithFlagNames(err, "dir", "dir")
	}
	kept, err := usage.Absolute(m.readRoots...)
	if err != nil {
		return o, usage.WithFlagNames(err, "read-dir", "read-dir")
	}
	o.Roots = o.Roots.ReadOnlyAt(kept.Strings())
	within, err := foldersWithin(m.within)
	for _, dir := range within.All() {
		o.Workspace.Policy.Allow = append(o.Workspace.Policy.Allow, dir)
	}
	return o, err
}

// follow makes the server one of a session, with its roots and its rules.
func (m mcpFlags) follow(ctx context.Context, o *mcpserver.Options) {
	secret := os.Getenv(mcprelay.SecretVariable)
	o.Guard = func(ctx context.Context, w *workspace.Workspace) (*workspace.Workspace, error) {
		rules, err := mcprelay.SessionRules(ctx, m.session, secret)
		if err != nil {
			return nil, err
		}
		return guarded(w, permission.Permissions{Ask: rules.Ask, Deny: rules.Deny})
	}
	o.Session = func(ctx context.Context) ([]workspace.Root, error) {
		return mcprelay.SessionRoots(ctx, m.session, secret)
	}
	if m.tellOnly {
		o.Only = []string{"find_skills"}
	}
	var err error
	o.Context, err = mcprelay.SessionContext(ctx, m.session, secret)
	switch {
	case errors.Is(err, mcprelay.ErrEnded): // started by an agent that has kept the server
		o.Logger.Info("serving no tools", "reason", err)
		o.Only = []string{}
	case err != nil:
		o.Logger.Info("cannot tell the model what is in the folders", "error", err)
	}
}

// guard returns w as the rules of the configuration let it be used.
func (set *settings) guard(
	_ context.Context, w *workspace.Workspace,
) (*workspace.Workspace, error) {
	sources, err := set.sources(w)
	if err != nil || sources.Configured == nil {
		return w, err
	}
	return guarded(w, *sources.Configured)
}

// guarded returns w as rules let it be used.
func guarded(w *workspace.Workspace, p permission.Permissions) (*workspace.Workspace, error) {
	rules, err := p.Rules()
	if err != nil {
		return nil, err
	}
	return rules.Guard(w), nil
}

// permit permits changes: an MCP client asks its user before it calls a tool that is not read-only.
// The user does not learn then what a file would lose, nor that it is not the one whose name looks
// the same, so that is not permitted.
func permit(_ context.Context, c tools.Change) error {
	if c.Alike != "" {
		return fmt.Errorf("there is %s, whose name looks the same: use exactly this name, or "+
			"another one", text.Printable(c.Alike))
	}
	if c.Loses&^workspace.LosesLinks != 0 {
		return errors.New("acp-agent mcp cannot ask the user about that")
	}
	return nil
}

// rootsOf returns the root set of folders given on the command line, which may be empty.
func rootsOf(dirs []string) (workspace.Roots, error) {
	if len(dirs) == 0 {
		return workspace.Roots{}, nil
	}
	paths, err := usage.AbsolutePaths(dirs...)
	if err != nil {
		return workspace.Roots{}, err
	}
	return workspace.NewRoots(paths[0], paths[1:])
}

// readToken returns the token in the file of --token-file. source says what prints a token.
func readToken(path, source string) (string, error) {
	file, err := namedfile.Open(path)
	if err != nil {
		return "", usage.Errorf("--token-file: %v", namedfile.Explain(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode()&os.ModeDevice != 0 {
		return "", usage.Errorf("--token-file: %s is a device: give a file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "",
			usage.Errorf("--token-file: other users can access %s: chmod 600 makes it private",
				path)
	}
	const most = 4 << 10
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return "", err
	}
	const mark = "\ufeff" // with which editors on Windows begin files
	token := strings.TrimSpace(strings.TrimPrefix(string(content), mark))
	if len(content) > most || !isToken(token) {
		return "", usage.Errorf(
			"--token-file: %s must contain a token and nothing else: at least 16 letters, digits "+
				"and -._~+/=; %s prints one", path, source)
	}
	return token, nil
}

// isToken reports whether a token can be sent in a header and is hard to guess.
func isToken(token string) bool {
	return len(token) >= 16 && !strings.ContainsFunc(token, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) &&
			!strings.ContainsRune("-._~+/=", r)
	})
}

// listenLoopback listens on the address of a flag, which only this machine can reach.
func listenLoopback(ctx context.Context, flag, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usage.Errorf("%s: invalid address %q; use one such as 127.0.0.1:8080",
			flag, addr)
	}
	if !secret.IsLoopback(host) {
		return nil, usage.Errorf(
			"%s: %s can be reached from other machines; use 127.0.0.1, [::1] or localhost", flag,
			addr)
	}
	return listenTCP(ctx, flag, addr)
}

// listenTCP listens on the address that a flag gives.
func listenTCP(ctx context.Context, flag, addr string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("%s: %s is in use by another program, perhaps another "+
				"acp-agent: end it, or choose another port; port 0 is a free one", flag, addr)
		}
		return nil, usage.Errorf("%s: cannot listen on %s: %v; give an address of this machine, "+
			"such as 127.0.0.1:0", flag, addr, failed.Err)
	}
	return listener, err
}

// explainHTTP prints what clients need to connect, and what they can do.
func (m mcpFlags) explainHTTP(s streams, addr net.Addr, token string) {
	s.note("serving MCP on http://%s", addr)
	switch {
	case token == "":
		s.note("--no-auth: every user of this machine can use the server, with your rights")
	case m.tokenFile != "":
		s.note("clients must send the header Authorization: Bearer TOKEN, with the token in %s",
			m.tokenFile)
	default:
		s.note("clients must send the header Authorization: Bearer %s", token)
	}
	if m.anyRoot {
		s.note("--any-dir: clients can use every folder that you can; --dir or --within would " +
			"limit them")
	}
}

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close() // a client that listens for notifications keeps its connection open
	}
	return err
}
