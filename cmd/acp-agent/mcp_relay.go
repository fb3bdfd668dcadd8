package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/mcprelay"
	"github.com/acp-agent/acp-agent/internal/process"
)

// newMCPRelay stands between an agent and one of its MCP servers.
func newMCPRelay(s streams, f *serveFlags) *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "mcp-relay [flags] --roots-from SOCKET -- COMMAND ARGS...",
		Short: "Start an MCP server and answer its questions for the roots",
		Long: `mcp-relay starts a stdio MCP server, passes messages between it and the client unaltered, and answers the server's
questions for the roots with those of an acp-agent session. That session's acp-agent has the agent behind it start this; the socket and the
secret in ` + mcprelay.SecretVariable + ` are its own.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || cmd.ArgsLenAtDash() != 0:
				return usagef("mcp-relay needs the MCP server's command after --; see acp-agent mcp-relay --help")
			case socket == "":
				return usagef("mcp-relay needs --roots-from SOCKET, which an acp-agent session gives the agent behind it")
			}
			return relayMCP(cmd.Context(), s, *f, socket, process.Command{Path: args[0], Args: args[1:]})
		},
	}
	cmd.Flags().StringVar(&socket, "roots-from", "", "the `SOCKET` of the session whose roots the server is told")
	return heeding(cmd, "log-level", "log-file", "max-line")
}

// relayMCP relays until the server or the client ends.
func relayMCP(ctx context.Context, s streams, f serveFlags, socket string, server process.Command) error {
	secret := os.Getenv(mcprelay.SecretVariable)
	if secret == "" {
		return usagef("%s is not set: an acp-agent session gives it to the agent behind it, with the command", mcprelay.SecretVariable)
	}
	logger, closeLog, err := f.log.open(s.err)
	if err != nil {
		return err
	}
	defer closeLog()
	err = mcprelay.Run(ctx, s.in, s.out, server, mcprelay.Options{
		Address: socket, Secret: secret, MaxMessage: f.maxLine, Logger: logger,
		Child: process.Options{Logger: slog.New(plainLines{s.err}), MaxLogLine: 64 << 10},
	})
	var exit *process.ExitError
	if errors.As(err, &exit) && exit.Code > 0 {
		return &statusError{name: proxy.ProgramName(server.Path), status: exit.Code}
	}
	return err
}

// plainLines is a handler that writes what is logged and nothing else, for a server's standard error.
type plainLines struct{ out io.Writer }

func (plainLines) Enabled(context.Context, slog.Level) bool { return true }

func (p plainLines) Handle(_ context.Context, r slog.Record) error {
	_, err := io.WriteString(p.out, r.Message+"\n")
	return err
}

func (p plainLines) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p plainLines) WithGroup(string) slog.Handler      { return p }
