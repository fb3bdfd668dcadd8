package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// serverProcess is a server that runs as a process, and the link to it.
type serverProcess struct {
	*stdioTransport
	server  *server
	process *process.Process
	sandbox sandbox.Policy
}

// startProcess starts the server in the session's folders. What it sends goes to b.
func (s *server) startProcess(ctx context.Context, in folders, b *inbox) (*serverProcess, error) {
	command, err := s.command(in)
	if err != nil {
		return nil, err
	}
	started, err := process.Start(ctx, command,
		process.Options{Logger: s.log, Secrets: s.redactor.Scrubber, Refused: s.explainRefusal})
	if err != nil {
		return nil, err
	}
	t := newStdioTransport(b, started.Stdout(), started.Stdin())
	return &serverProcess{t, s, started, command.Sandbox}, nil
}

// command returns the command that starts the server, in its sandbox.
func (s *server) command(in folders) (command process.Command, err error) {
	args, env, err := expandTemplates(s.config, in.roots)
	if err != nil {
		return command, err
	}
	dir := cmp.Or(s.config.Dir, in.ws.Roots().Cwd().String())
	if err := in.ws.HandOverDir(dir); err != nil {
		return command, fmt.Errorf("%w: %w", errDirectory, err)
	}
	command = process.Command{Path: s.config.Command, Args: args, Dir: dir, Name: s.config.Name}
	command.Base = process.EnvironmentWithout(s.set.options.Withheld)
	switch {
	case s.set.options.Environment != nil:
		command.Base = s.set.options.Environment
	case s.config.File != "":
		command.Base = BasicEnvironment()
	}
	for _, p := range env {
		command.Env = append(command.Env, p.Name+"="+p.Value)
	}
	command, err = confine.Command(command, s.config.Policy.Sandbox, grantedRoots(in.roots.Existing()))
	if err != nil {
		return command, err
	}
	if err := s.config.Policy.Sandbox.Unprotected(); err != nil {
		s.tellOnce(fmt.Sprintf("MCP server %s runs without a sandbox and can write wherever you "+
			"can: %v.", text.Name(s.config.Name), err))
	}
	return command, nil
}

// grantedRoots returns roots as a server in the sandbox is granted them.
func grantedRoots(roots mcproots.Snapshot) (all []workspace.Root) {
	for _, root := range roots.All() {
		for _, dir := range root.Dirs {
			all = append(all, workspace.Root{Dir: dir, Real: root.Real, Grant: root.Grant})
		}
	}
	return all
}

// explainRefusal tells the user, once for each host, which setting would let the server connect.
func (s *server) explainRefusal(r hosts.Refusal) {
	s.tellOnce(confine.ExplainRefusal(r, "MCP server "+text.Name(s.config.Name),
		text.Code("mcpServers."+s.config.Name)))
}

// explainDenial implements [link]. It explains each path once.
func (p *serverProcess) explainDenial(message string) {
	name := p.server.config.Name
	explanation, _ := confine.ExplainDenial(p.sandbox, message, "MCP server "+text.Name(name),
		text.Code("mcpServers."+name))
	if explanation != "" {
		p.server.tellOnce(explanation)
	}
}

// cause implements [link].
func (p *serverProcess) cause() error { return p.writer.Err() }

// stop implements [link]. It kills the process group if it does not end in time.
func (p *serverProcess) stop() {
	ctx, cancel := p.server.set.stopContext()
	defer cancel()
	_ = p.Close()
	if err := p.process.Stop(ctx); err != nil {
		p.server.log.Error("MCP server does not stop", "error", err)
	}
	p.writer.Wait()
}

// end implements [link]. It explains how the process ended unless we ended it.
func (p *serverProcess) end(sdkErr error) error {
	err := p.writer.Err()
	if errors.As(err, new(*limitError)) {
		return err
	}
	serverClosed := errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, os.ErrClosed)
	if errors.Is(err, errClosedByUs) || !serverClosed {
		return sdkErr
	}
	if err := p.process.Wait(context.Background()); err != nil {
		p.explainDenial(err.Error())
		exit, ok := errors.AsType[*process.ExitError](err)
		if ok && len(exit.Stderr) == 0 {
			return fmt.Errorf("%w; it wrote no error: run its command in a terminal to see why",
				err)
		}
		return err
	}
	return fmt.Errorf("it exited with status 0; its stderr is in the log at level info, "+
		"under child=%s", p.process.Name())
}
