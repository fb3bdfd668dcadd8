package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/process"
)

// behind is the agent that is put behind us; the zero value is none.
type behind struct {
	command process.Command
	profile proxy.Profile
	tools   process.Command // an MCP server that has tools for roots
	relay   process.Command // what stands in front of other MCP servers
}

// name is what the log calls the agent that answers.
func (b behind) name() string {
	if b.command.Path == "" {
		return "explore"
	}
	return proxy.ProgramName(b.command.Path)
}

// behind is the agent that --agent names, with args behind its own, or the one that the command args
// starts.
func (f serveFlags) behind(args []string) (behind, error) {
	if f.agent == "" {
		if len(args) == 0 {
			return behind{}, nil
		}
		c := process.Command{Path: args[0], Args: args[1:]}
		p, _ := proxy.MatchProfile(f.profiles, c)
		return f.withOurs(c, p), nil
	}
	p, known := proxy.FindProfile(f.profiles, f.agent)
	if !known {
		return behind{}, usagef("--agent: no agent is called %q%s (acp-agent agents says more of them, and how to add one)",
			f.agent, meant(f.agent, names(f.profiles)))
	}
	c := p.StartCommand()
	c.Args = append(c.Args, args...)
	return f.withOurs(c, p), nil
}

// withOurs is an agent with the commands of this program that it is given.
func (f serveFlags) withOurs(c process.Command, p proxy.Profile) behind {
	return behind{c, p, f.rootsTools(), f.ourselves("mcp-relay", "--max-line", strconv.Itoa(f.maxLine))}
}

// rootsTools is this program as an MCP server, with what is said here of roots; zero if it does not know where it is.
func (f serveFlags) rootsTools() process.Command {
	return f.ourselves("mcp", "--mounts", f.mounts.String(), "--max-roots", strconv.Itoa(f.maxRoots))
}

// ourselves is a subcommand of this program with the same configuration; zero if it does not know where it is.
func (f serveFlags) ourselves(subcommand string, flags ...string) process.Command {
	program, err := os.Executable()
	if err != nil {
		return process.Command{}
	}
	c := process.Command{Path: program, Args: []string{subcommand}}
	if f.file.path != "" {
		if path, err := filepath.Abs(f.file.path); err == nil {
			c.Args = append(c.Args, "--config", path)
		}
	}
	c.Args = append(c.Args, flags...)
	return c
}

func names(profiles []proxy.Profile) []string {
	list := make([]string, len(profiles))
	for i, p := range profiles {
		list[i] = p.Name
	}
	return list
}

// newRuntime is what answers: the agent behind us, or the built-in one.
func newRuntime(b behind, state string, logger *slog.Logger) backend.Backend {
	if b.command.Path == "" {
		return explore.New()
	}
	return proxy.New(b.command, proxy.Options{
		Profile: b.profile, RootsTools: b.tools,
		Relay: b.relay, RelayDir: filepath.Join(state, "relay"), Logger: logger,
	})
}

// inTerminal runs the agent behind us in the person's terminal. Editors do that where an agent wants a person to
// log in: they start the same command with the agent's own arguments behind it.
func inTerminal(ctx context.Context, s streams, b behind) error {
	cmd := exec.CommandContext(ctx, b.command.Path, b.command.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.err
	cmd.Env = append(os.Environ(), b.command.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &statusError{name: proxy.ProgramName(b.command.Path), status: exit.ExitCode()}
	}
	return err
}
