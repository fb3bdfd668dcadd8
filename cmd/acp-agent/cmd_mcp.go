package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/mcpserver"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// mcpFlags are the flags of the mcp subcommand.
type mcpFlags struct {
	roots     []string
	fallbacks []string
	within    []string
	http      string
	readOnly  bool
	timeout   time.Duration
}

// newMCP returns the command that serves the file tools over MCP.
func newMCP(s streams, set *settings) *cobra.Command {
	var m mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp [--root DIR]... [flags]",
		Short: "Serve file tools over MCP, in the roots of the client",
		Long: `mcp is an MCP server on standard input and output, or over HTTP. Its tools list, read, search, write and edit files
only in the roots that the client declares, and follow the client when its roots change. With --root the client is
not asked and these folders are used instead.

Tools that write are marked as such, and the client is expected to ask its user before it calls them. --read-only
leaves them out.`,
		Example: `  acp-agent mcp                            what an MCP client starts
  acp-agent mcp --root app --root shared   use these folders, whatever the client declares
  acp-agent mcp --within ~/src             reject roots elsewhere
  acp-agent mcp --http 127.0.0.1:8080      serve streamable HTTP, on this machine only`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := exclusive(cmd, "root", "fallback-root"); err != nil {
				return err
			}
			if m.timeout <= 0 {
				return usagef("--roots-timeout must be positive (got %v)", m.timeout)
			}
			return serveMCP(cmd.Context(), s, set, m)
		},
	}
	cmd.Flags().Var((*listValue)(&m.roots), "root", "a root folder `DIR`, instead of the client's; can be repeated")
	cmd.Flags().Var((*listValue)(&m.fallbacks), "fallback-root", "a root folder `DIR` for clients that cannot declare roots; can be repeated")
	cmd.Flags().Var((*listValue)(&m.within), "within", "reject roots outside `DIR`; can be repeated")
	cmd.Flags().StringVar(&m.http, "http", "", "serve streamable HTTP on the loopback address `ADDR`, such as 127.0.0.1:8080")
	cmd.Flags().BoolVar(&m.readOnly, "read-only", false, "serve only the tools that do not change files")
	cmd.Flags().DurationVar(&m.timeout, "roots-timeout", 5*time.Second, "how long to wait for the client's roots, as a `DURATION` such as 10s")
	set.accept(cmd, "log-level", "log-file", "max-line", "max-roots", "mounts")
	return cmd
}

func serveMCP(ctx context.Context, s streams, set *settings, m mcpFlags) error {
	if m.http == "" && s.interactive() {
		return usagef("standard input is a terminal, but an MCP client is expected there: add the command \"acp-agent mcp\" to it")
	}
	logger, closeLog, err := set.openLog(s.err)
	if err != nil {
		return err
	}
	defer closeLog()
	options, err := m.options(set, logger)
	if err != nil {
		return err
	}
	server, err := mcpserver.Open(ctx, options)
	if err != nil {
		return withFlagNames(err, m.openedFlag(), m.openedFlag())
	}
	defer server.Close()
	if m.http != "" {
		return serveHTTP(ctx, s, m.http, server.Handler())
	}
	return server.Serve(ctx, s.in, s.out)
}

// options returns the options of the server.
func (m mcpFlags) options(set *settings, logger *slog.Logger) (o mcpserver.Options, err error) {
	o = mcpserver.Options{
		Version: version(), Timeout: m.timeout, MaxMessage: set.maxLine, Logger: logger,
		Workspace: set.workspace(),
	}
	if !m.readOnly {
		o.Permit = permitAll
	}
	if o.Roots, err = rootsOf(m.roots); err != nil {
		return o, withFlagNames(err, "root", "root")
	}
	if o.Fallback, err = rootsOf(m.fallbacks); err != nil {
		return o, withFlagNames(err, "fallback-root", "fallback-root")
	}
	within, err := absolutePaths(m.within...)
	if err != nil {
		return o, err
	}
	for _, path := range within {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return o, err
		}
		o.Workspace.Policy.Allow = append(o.Workspace.Policy.Allow, dir)
	}
	return o, nil
}

// openedFlag returns the flag whose folders are opened at the start.
func (m mcpFlags) openedFlag() string {
	if len(m.roots) > 0 {
		return "root"
	}
	return "fallback-root"
}

// permitAll permits every change: an MCP client asks its user before it calls a tool that is not read-only.
func permitAll(context.Context, tools.Change) error { return nil }

// rootsOf returns the root set of folders given on the command line, which may be empty.
func rootsOf(dirs []string) (workspace.Roots, error) {
	if len(dirs) == 0 {
		return workspace.Roots{}, nil
	}
	paths, err := absolutePaths(dirs...)
	if err != nil {
		return workspace.Roots{}, err
	}
	return workspace.NewRoots(paths[0], paths[1:])
}

// serveHTTP serves until ctx ends. There is no authentication, so it only accepts addresses of this machine.
func serveHTTP(ctx context.Context, s streams, addr string, handler http.Handler) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef("--http: invalid address %q; use one such as 127.0.0.1:8080", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--http: %s can be reached from other machines, and the server has no authentication; use 127.0.0.1, [::1] or localhost", addr)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	fmt.Fprintf(s.err, "acp-agent: serving MCP on http://%s\n", listener.Addr())
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err := server.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close() // a client that listens for notifications keeps its connection open
		}
		stopped <- err
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
