package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/mcpservers"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// serveFlags are the flags of the program itself.
type serveFlags struct {
	stateDir string
	log      logFlags
	trace    string
	maxLine  int
	maxRoots int
	config   string
	mounts   workspace.Mounts
	replay   int
	agent    string
	file     settingsFile
	profiles []profile.Profile // the known agents, as the configuration has them
}

const about = `acp-agent answers an ACP editor with sessions that have several root folders.

An editor starts it and speaks ACP to it over standard input and output. By itself it
answers from the session's folders (type /help in a session). With --agent, or a command
after "--", it puts that agent behind itself.`

const examples = `  acp-agent                                   what an editor starts
  acp-agent -- opencode acp                   the same in front of another agent
  acp-agent --agent gemini                    the same in front of a known one: see acp-agent agents
  acp-agent run --cwd app --dir shared /roots try it from a shell`

// newRoot is the command line.
func newRoot(s streams) *cobra.Command {
	var f serveFlags
	root := &cobra.Command{
		Use:           "acp-agent [flags] [-- COMMAND ARGS...]",
		Short:         "An ACP agent with multi-root sessions",
		Long:          about,
		Example:       examples,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usagef("unknown command %q; to put an agent behind acp-agent write it after --: acp-agent -- %s", args[0], strings.Join(args, " "))
			}
			return serve(cmd.Context(), s, f, args)
		},
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		file, err := applySettings(cmd, f.config)
		if err != nil {
			return err
		}
		f.file, f.profiles = file, file.profiles()
		if _, err := f.behind(nil); err != nil {
			return err
		}
		if f.maxLine < 1 || f.maxRoots < 1 {
			return usagef("--max-line and --max-roots are at least 1")
		}
		return nil
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%v; see acp-agent --help", err) })
	flags := root.PersistentFlags()
	flags.StringVar(&f.config, "config", "", "read settings from `FILE` (default $XDG_CONFIG_HOME/acp-agent/config.json)")
	flags.StringVar(&f.agent, "agent", "", "put the known agent `NAME` behind acp-agent; see acp-agent agents")
	flags.StringVar(&f.stateDir, "state-dir", "", "keep sessions in `DIR` (default "+defaultStateDirText()+")")
	flags.StringVar(&f.log.level, "log-level", "warn", "log `LEVEL`: debug, info, warn or error")
	flags.StringVar(&f.log.file, "log-file", "", "append the log to `FILE` instead of standard error")
	flags.StringVar(&f.trace, "trace", "", "append every message with time and direction to `FILE`; values of env and headers, and secrets in URLs, are masked")
	flags.IntVar(&f.maxLine, "max-line", 64<<20, "refuse messages longer than `BYTES`")
	flags.IntVar(&f.maxRoots, "max-roots", 64, "refuse sessions with more than `N` root folders")
	flags.TextVar(&f.mounts, "mounts", workspace.ExistingMounts, "what is mounted below a root is reached if `POLICY` says so: none, existing (mounted before the session) or any")
	flags.IntVar(&f.replay, "replay-rate", 0, "replay at most `N` updates a second when a session is loaded (default 6000; -1 for no bound)")
	root.AddCommand(newRun(s, &f), newSessions(s, &f), newRoots(s, &f), newAgents(s, &f), newDiscover(s, &f), newMCP(s, &f), newMCPRelay(s, &f), newVersion(s))
	return root
}

// serve answers the client on the standard streams until it leaves.
func serve(ctx context.Context, s streams, f serveFlags, args []string) error {
	b, err := f.behind(args)
	switch {
	case err != nil:
		return err
	case s.interactive() && len(args) > 0:
		return inTerminal(ctx, s, b)
	case s.interactive():
		return usagef("%s", interactiveHelp)
	}
	logger, closeLog, err := f.log.open(s.err)
	if err != nil {
		return err
	}
	defer closeLog()
	tap, closeTrace, err := openTrace(f.trace)
	if err != nil {
		return err
	}
	defer closeTrace()
	dir, err := f.state()
	if err != nil {
		return err
	}
	store := sqlite.New(sqlite.Options{Dir: dir, Retention: sessionstore.Retention})
	err = acp.Serve(ctx, s.in, s.out, acp.Options{
		Runtime:   func() runtime.Runtime { return newRuntime(b, dir, logger) },
		Store:     store,
		Workspace: f.workspace(),
		Wire:      wire.Options{MaxLine: f.maxLine, Tap: tap},
		MCPPolicy: f.file.mcpPolicy,
		Consents:  mcpservers.NewConsents(filepath.Join(dir, "mcp-allowed")),

		ReplayRate: f.replay,
		Version:    version(),
		Logger:     logger,
	})
	if closeErr := store.Close(); err == nil && closeErr != nil {
		return fmt.Errorf("closing the session store: %w", closeErr)
	}
	return err
}

// workspace are the options for opening root sets.
func (f serveFlags) workspace() workspace.Options {
	return workspace.Options{MaxRoots: f.maxRoots, Mounts: f.mounts}
}

// interactiveHelp is for a person who starts the program in a terminal.
const interactiveHelp = `standard input is a terminal, but an editor is expected there.

Add acp-agent to your editor as an ACP agent: the command is "acp-agent", without arguments.
To try it here: acp-agent run --cwd DIR --dir DIR... PROMPT
Everything else: acp-agent --help`
