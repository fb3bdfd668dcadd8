package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/mcp/mcprelay"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/usage"
)

func newMCPRelay(set *settings) *cobra.Command {
	var socket string
	var found process.Command
	cmd := set.newCommand("mcp-relay", cobra.ArbitraryArgs, needsConfig, flags{
		"roots-from": &socket, "server": &found.Name, "found-in": &found.Dir, "env": &found.Env,
		"log-level": nil, "log-file": nil, "max-line": nil},
		func(cmd *cobra.Command, args []string) error {
			before, line := splitAtDash(cmd, args)
			switch {
			case len(before) > 0 || len(line) == 0:
				return usage.Errorf("mcp-relay needs the command of an MCP server after --; " +
					"see acp-agent mcp-relay --help")
			case socket == "" && found.Dir == "":
				return usage.Errorf("mcp-relay needs --roots-from SOCKET or --found-in DIR; " +
					"see acp-agent mcp-relay --help")
			}
			found.Path, found.Args = line[0], line[1:]
			if found.Dir != "" {
				found.Base = mcpclient.BasicEnvironment()
				for i, name := range found.Env {
					found.Env[i] = name + "=" + os.Getenv(name)
				}
			}
			return relayMCP(cmd.Context(), set, socket, found)
		})
	cmd.Hidden = true // agents start it
	return cmd
}

// relayMCP relays until the server or the client ends.
func relayMCP(ctx context.Context, set *settings, socket string, server process.Command) error {
	secret := os.Getenv(mcprelay.SecretVariable)
	if secret == "" && socket != "" {
		return usage.Errorf("%s is not set; see acp-agent mcp-relay --help",
			mcprelay.SecretVariable)
	}
	logger, closeLog, err := set.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	err = mcprelay.Run(ctx, set.in, set.out, server, mcprelay.Options{
		Address: socket, Secret: secret, Server: server.Name,
		MaxMessage: set.maxLine, Logger: logger,
		Child: process.Options{Logger: slog.New(plainLines{set.err}), MaxLogLine: 64 << 10},
	})
	if exit, ok := errors.AsType[*process.ExitError](err); ok && exit.Code > 0 {
		return &statusError{exit.Code}
	}
	return err
}

// plainLines is a slog.Handler that writes only the messages, which are lines of a child process.
type plainLines struct{ out io.Writer }

func (plainLines) Enabled(context.Context, slog.Level) bool { return true }

func (p plainLines) Handle(_ context.Context, r slog.Record) error {
	return terminal.Say(p.out, "%s", r.Message)
}

func (p plainLines) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p plainLines) WithGroup(string) slog.Handler      { return p }
