package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
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
	profiles []proxy.Profile // the known agents, as the configuration has them
}

const about = `acp-agent answers an ACP editor with sessions that have several root folders.

An editor starts it and speaks ACP to it over standard input and output. By itself it
answers from the session's folders (type /help in a session). With --agent, or a command
after "--", it puts that agent behind itself.

What flags say can also be said by the environment, as ACP_AGENT_STATE_DIR for --state-dir, and all but
--config by the configuration file, as {"stateDir": "…"}. A flag counts first, the file last. --agent is a flag alone.

It exits with 0 when the editor has left or it was told to end (SIGINT, SIGTERM, SIGHUP), with 2 if the
command line or the configuration cannot be followed, and with 1 if something else went wrong.`

const examples = `  acp-agent                                   what an editor starts
  acp-agent -- opencode acp                   the same in front of another agent
  acp-agent --agent gemini                    the same in front of a known one: see acp-agent agents
  acp-agent run --cwd app --dir shared /roots try it from a shell`

// newRoot is the command line.
func newRoot(s streams) *cobra.Command {
	var f serveFlags
	var showVersion bool // not by cobra's own flag, whose template makes the program a fifth larger
	root := &cobra.Command{
		Use:           "acp-agent [flags] [-- COMMAND ARGS...]",
		Short:         "An ACP agent with multi-root sessions",
		Long:          about,
		Example:       examples,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
				return nil
			}
			slip := ";"
			if near := nearest(args[0], subcommands(cmd)); near != "" {
				slip = fmt.Sprintf("; did you mean %q? Else,", near)
			}
			return usagef("unknown command %q%s to put an agent behind acp-agent write it after --: acp-agent -- %s", args[0], slip, strings.Join(args, " "))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if showVersion {
				return printVersion(s)
			}
			return serve(cmd.Context(), s, f, args)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := refuseUnheeded(cmd); err != nil {
				return err
			}
			file, err := applySettings(cmd, f.config)
			if completing(cmd) {
				return nil // a mistake in the configuration spoils no line that is being typed
			}
			if err != nil {
				return err
			}
			f.file, f.profiles = file, file.profiles()
			_, err = f.behind(nil)
			return err
		},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef("%v; see %s --help", err, cmd.CommandPath()) })
	f.define(root.PersistentFlags())
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the version")
	root.AddCommand(newRun(s, &f), newSessions(s, &f), newRoots(s, &f), newAgents(s, &f), newDiscover(s, &f), newMCP(s, &f), newMCPRelay(s, &f), newConsents(s, &f), newVersion(s))
	f.completeValues(root)
	strictGenerated(root)
	helpOfHeeded(root)
	return root
}

// define adds the flags of the program.
func (f *serveFlags) define(flags *pflag.FlagSet) {
	f.log.level, f.maxLine, f.maxRoots = slog.LevelWarn, 64<<20, workspace.DefaultMaxRoots
	flags.StringVar(&f.config, "config", "", "read settings from `FILE` (default "+defaultConfigText()+")")
	flags.StringVar(&f.agent, "agent", "", "put the known agent `NAME` behind acp-agent; see acp-agent agents")
	flags.StringVar(&f.stateDir, "state-dir", "", "keep sessions in `DIR` (default "+defaultStateDirText()+")")
	flags.Var(level{&f.log.level}, "log-level", "log what is of this `LEVEL` or above: debug, info, warn or error")
	flags.StringVar(&f.log.file, "log-file", "", "append the log to `FILE` instead of standard error")
	flags.StringVar(&f.trace, "trace", "", "append every message with time and direction to `FILE`; values of env and headers, and secrets in URLs, are masked")
	flags.Var(number{&f.maxLine, 1}, "max-line", "refuse messages longer than `BYTES`")
	flags.Var(number{&f.maxRoots, 1}, "max-roots", "refuse sessions with more than `N` root folders")
	flags.TextVar(&f.mounts, "mounts", workspace.ExistingMounts, "what is mounted below a root is reached if `POLICY` says so: none, existing (mounted before the session) or any")
	flags.Var(number{&f.replay, -1}, "replay-rate", "replay at most `N` updates a second when a session is loaded (default 6000; -1 for no bound)")
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
	trace, closeTrace, err := openTrace(f.trace)
	if err != nil {
		return err
	}
	defer closeTrace()
	dir, err := f.state()
	if err != nil {
		return err
	}
	logger.Info("serving", "version", version(), "pid", os.Getpid(), "agent", b.name(), "stateDir", dir, "config", f.file.path)
	warnOfOthers(logger, dir)
	store := sqlite.New(sqlite.Options{Dir: dir, Retention: sessionstore.Retention})
	err = acp.Serve(ctx, s.in, s.out, acp.Options{
		Backend:   func() backend.Backend { return newRuntime(b, dir, logger) },
		Store:     store,
		Workspace: f.workspace(),
		MaxLine:   f.maxLine,
		Trace:     trace,
		MCPPolicy: f.file.mcpPolicy,

		ConsentDir: consentDir(dir),
		ReplayRate: f.replay,
		Version:    version(),
		Logger:     logger,
	})
	logger.Info("ending")
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
