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

// newMCP serves the file tools to MCP clients.
func newMCP(s streams, f *serveFlags) *cobra.Command {
	var m mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp [--root DIR]... [flags]",
		Short: "Serve the file tools as an MCP server that follows its client's roots",
		Long: `mcp is an MCP server on standard input and output, or over HTTP. Its tools list, read, search, write and edit
files in the roots that the client declares, and nowhere else; when the client changes its roots, they follow. With
--root the folders are given here instead, and the client is not asked.

Writing tools are marked as such, and it is the client that asks its user before it calls them; --read-only leaves them out.`,
		Example: `  acp-agent mcp                            what an MCP client starts
  acp-agent mcp --root app --root shared   on these folders, whatever the client declares
  acp-agent mcp --within ~/src             refuse roots elsewhere
  acp-agent mcp --http 127.0.0.1:8080      over streamable HTTP, on this machine only`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onlyOne(cmd, "root", "fallback-root"); err != nil {
				return err
			}
			if m.timeout <= 0 {
				return usagef("--roots-timeout %v is no time to answer in: give one such as 5s", m.timeout)
			}
			return serveMCP(cmd.Context(), s, *f, m)
		},
	}
	cmd.Flags().StringArrayVar(&m.roots, "root", nil, "a root folder `DIR`, instead of the client's; repeat for more")
	cmd.Flags().StringArrayVar(&m.fallbacks, "fallback-root", nil, "a root folder `DIR` for clients that cannot declare roots; repeat for more")
	cmd.Flags().StringArrayVar(&m.within, "within", nil, "refuse roots that do not lie in `DIR`; repeat for more")
	cmd.Flags().StringVar(&m.http, "http", "", "serve over streamable HTTP on the loopback address `ADDR`, such as 127.0.0.1:8080")
	cmd.Flags().BoolVar(&m.readOnly, "read-only", false, "leave out the tools that change files")
	cmd.Flags().DurationVar(&m.timeout, "roots-timeout", 5*time.Second, "how long a client take to say its roots, as a `DURATION` such as 5s")
	return heeding(cmd, "log-level", "log-file", "max-line", "max-roots", "mounts")
}

func serveMCP(ctx context.Context, s streams, f serveFlags, m mcpFlags) error {
	if m.http == "" && s.interactive() {
		return usagef("standard input is a terminal, but an MCP client is expected there: the command to add to it is \"acp-agent mcp\"")
	}
	logger, closeLog, err := f.log.open(s.err)
	if err != nil {
		return err
	}
	defer closeLog()
	options, err := m.options(f, logger)
	if err != nil {
		return err
	}
	server, err := mcpserver.Open(ctx, options)
	if err != nil {
		return flagged(err, m.given(), m.given())
	}
	defer server.Close()
	if m.http != "" {
		return serveHTTP(ctx, s, m.http, server.Handler())
	}
	return server.Serve(ctx, s.in, s.out)
}

// options are those of the server that the flags ask for.
func (m mcpFlags) options(f serveFlags, logger *slog.Logger) (o mcpserver.Options, err error) {
	o = mcpserver.Options{
		Version: version(), Timeout: m.timeout, MaxMessage: f.maxLine, Logger: logger,
		Workspace: f.workspace(),
	}
	if !m.readOnly {
		o.Permit = leaveToTheClient
	}
	if o.Roots, err = rootsOf(m.roots); err != nil {
		return o, flagged(err, "root", "root")
	}
	if o.Fallback, err = rootsOf(m.fallbacks); err != nil {
		return o, flagged(err, "fallback-root", "fallback-root")
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

// given is the flag that names the folders that are opened at the start.
func (m mcpFlags) given() string {
	if len(m.roots) > 0 {
		return "root"
	}
	return "fallback-root"
}

// leaveToTheClient permits every change: an MCP client asks its user before it calls a tool that is not read-only.
func leaveToTheClient(context.Context, tools.Change) error { return nil }

// rootsOf is the root set of folders as a shell spells them, zero for none.
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

// serveHTTP serves until ctx ends. Whoever reaches the port can use the tools, so that it is one of this machine.
func serveHTTP(ctx context.Context, s streams, addr string, handler http.Handler) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef("--http %s is no address: give one such as 127.0.0.1:8080", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--http %s is not on this machine alone, and the server asks nobody for a password: give 127.0.0.1, [::1] or localhost", addr)
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
			err = server.Close() // a client that listens for notices does so until it is told otherwise
		}
		stopped <- err
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
