package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

// newACP returns a command that is equivalent to the program without a command.
func newACP(set *settings) *cobra.Command {
	cmd := set.newCommand("acp", downstreamArgs, needsAll, nil,
		func(cmd *cobra.Command, args []string) error {
			return serveEditor(cmd.Context(), set, args)
		})
	setup := newSetup(set) // which such editors append to let the user sign in
	setup.Hidden = true
	cmd.AddCommand(setup)
	return cmd
}

const terminalHelp = `an editor starts acp-agent like this; on a terminal:

  acp-agent setup    choose folders, editor and agent
  acp-agent run      chat here; --dir FOLDER adds a folder
  acp-agent --help   everything else`

// serveEditor serves the editor on the standard streams until it closes the connection.
func serveEditor(ctx context.Context, set *settings, args []string) error {
	d, err := set.downstream(set.choice(args))
	switch {
	case err != nil:
		return err
	case set.interactive() && len(args) > 0:
		// To let a user log in to an agent, editors start the configured command in a terminal with
		// the agent's own arguments appended.
		command, err := d.agent.Profile.Restrict(d.command, nil)
		if err != nil {
			return err
		}
		return exitStatus(process.RunInTerminal(ctx, command, set.in, set.out, set.err))
	case set.interactive():
		return usage.Errorf("%s", terminalHelp)
	}
	return set.serve(ctx, d, set.in, set.out)
}

// serve serves an editor, whose prompts d answers, until it closes the connection.
func (set *settings) serve(ctx context.Context, d downstream, in io.Reader, out io.Writer) error {
	m, closeMachine, err := set.openMachine()
	if err != nil {
		return err
	}
	defer closeMachine()
	if set.stateDir == "" { // HOME may name a directory that cannot exist
		if err := os.MkdirAll(set.dir(), 0o700); err != nil {
			return fmt.Errorf("cannot store sessions: %w; set HOME, or use --state-dir", err)
		}
	}
	m.log.Info("serving", "version", ownVersion().Number, "pid", os.Getpid(), "agent", d.name(),
		"stateDir", set.dir(), "config", set.config.Path)
	store, err := set.serverStore(m.log)
	if err != nil {
		return err
	}
	o := m.serving(d)
	o.Store = store
	err = acp.Serve(ctx, in, out, o)
	m.log.Info("ending")
	if closeErr := store.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("closing the session store: %w", closeErr)
	}
	if err != nil {
		return &servingError{err}
	}
	return nil
}

// machine has what connections use of this machine.
type machine struct {
	set   *settings
	log   *slog.Logger
	trace traceFunc
	roots workspace.Options
	proxy func(process.Command, proxy.Options) backend.Backend
}

// openMachine returns the machine, and a function that closes its log and trace.
func (set *settings) openMachine() (m machine, end func(), err error) {
	log, closeLog, err := set.openLog()
	if err != nil {
		return m, nil, err
	}
	trace, closeTrace, err := openTrace(set.trace, set.err)
	if err != nil {
		closeLog()
		return m, nil, err
	}
	end = func() {
		closeTrace()
		closeLog()
	}
	roots, err := set.workspace()
	if err != nil {
		end()
		return m, nil, err
	}
	return machine{set: set, log: log, trace: trace, roots: roots, proxy: proxy.New}, end, nil
}

// serving returns the options of a connection whose prompts d answers, without a store.
func (m machine) serving(d downstream) acp.Options {
	set := m.set
	return acp.Options{
		Backend:     func() backend.Backend { return m.backend(d) },
		Workspace:   m.roots,
		Folders:     set.declared,
		Budgets:     set.budgets,
		KeepFolders: set.keepDirs,
		MaxLine:     set.maxLine,
		Trace:       m.trace.of("editor"),
		MCPPolicy:   set.mcpPolicy,
		Withheld:    set.withheld(),
		ConsentDir:  set.dir(consentName),
		Worktrees:   set.sessionWorktrees(),
		SnapshotDir: set.snapshotDir(),
		Permissions: func(cwd workspace.Dir) *acp.Permissions {
			return (*acp.Permissions)(set.permissionsFor(cwd))
		},
		ReplayRate:   set.replayRate,
		AgentCommand: set.commandOf,
		SetupArgs:    []string{"setup"},
		Version:      ownVersion().Number,
		Logger:       m.log,
	}
}

// backend returns the backend that answers: a model, a proxy for the downstream agent, or package
// explore.
func (m machine) backend(d downstream) backend.Backend {
	switch {
	case len(d.model.Models) > 0:
		return model.New(d.model)
	case d.command.Path == "":
		return explore.New()
	}
	o := d.agent
	o.RelayDir = m.set.dir("relay")
	o.Workspace, o.Trace, o.Logger = m.roots, m.trace, m.log
	return m.proxy(d.command, o)
}
