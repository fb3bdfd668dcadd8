package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/setup"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

const setupHelp = `setup writes the configuration file and prints what to add to your editor. On a
terminal it asks for your editor, what should answer in it, what an agent may
do by itself, who remembers what you always allow, and which folders belong
together; type numbers or names, or Enter for what is in brackets. Then it shows
how the file changes, and writes it if you agree. A flag is an answer to its
question. With --yes nothing is asked, and what no flag says stays as it is.

What should answer is a known agent, --agent; another one, as a command after
"--"; a model that is configured or that a server on this machine offers,
--model; or neither, --agent=: then acp-agent itself answers commands such as
/search. The servers of Ollama, LM Studio, llama.cpp and vLLM are found at their
usual ports. A model at another address must be configured first; see acp-agent
models.

Folders that belong together are a working directory, --cwd, and those that
sessions in it have as well, --dir. They are used if the editor names none.
Folders that are configured for the same working directory stay.

--allow adds a rule to the permissions in the file, for all folders; see
acp-agent permissions. Comments in the file stay. Other flags of acp-agent are
put into what is printed.

The exit status is 130 if you interrupted it; then nothing was written.`

const setupExample = `  acp-agent setup
  acp-agent setup --yes --agent opencode --cwd ~/app --dir ~/lib --editor zed
  acp-agent setup --yes --model qwen3
  acp-agent setup --yes --allow "run go test ..."
  acp-agent setup --yes --editor jetbrains -- my-agent --acp`

// newSetup returns the command that writes the configuration file.
func newSetup(s streams, set *settings) *cobra.Command {
	o := setup.Options{In: s.in, Out: s.out, Err: s.err, Agents: set.agentsWith,
		Workspace: set.workspaceWith}
	var dirs []string
	cmd := &cobra.Command{
		Use:     "setup [flags] [-- COMMAND ARGS...]",
		Short:   "Choose what answers, and folders that belong together",
		Long:    setupHelp,
		Example: setupExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
				return nil
			}
			return usage.Errorf("setup takes flags, such as --editor zed --agent claude, and the command "+
				"of an agent after -- (got %q)", args[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "agent", "model"); err != nil {
				return err
			}
			o.Command = args
			o.Chosen = set.flags.Changed("agent") || set.flags.Changed("model")
			o.Agent, o.Model, o.Sandbox = set.agent, set.model, set.sandbox
			o.Path = cmp.Or(set.configPath, os.Getenv("ACP_AGENT_CONFIG"), config.DefaultPath())
			o.Dirs, o.KeepDirs = dirs, set.flags.Changed("keep-dirs")
			o.Rules = set.flags.Changed("allow") || set.flags.Changed("permissions")
			if set.flags.Changed("allow") {
				o.Allow = set.allow
			}
			var err error
			o.Arguments, err = set.given("agent", "model", "dir", "keep-dirs", "allow")
			if err != nil {
				return err
			}
			err = setup.Run(cmd.Context(), o)
			if errors.Is(err, context.Canceled) {
				fmt.Fprintln(s.err, "\nacp-agent: interrupted; nothing was written")
				return &statusError{statusInterrupted}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.Cwd, "cwd", "",
		"the working directory `DIR` that the folders of --dir belong to (default the current one)")
	cmd.Flags().Var((*listValue)(&dirs), "dir",
		"the folder `DIR` belongs to the working directory; can be repeated")
	cmd.Flags().StringVar(&o.Editor, "editor", "",
		"print what to add to `EDITOR`: "+strings.Join(setup.EditorNames(), ", "))
	cmd.Flags().BoolVar(&o.Yes, "yes", false, "ask nothing, and write the file")
	cmd.Flags().AddFlagSet(set.flags)
	return cmd
}

// given returns the flags that the command line has, without the named ones. Paths are absolute, as
// an editor may start acp-agent anywhere.
func (set *settings) given(without ...string) (flags []string, err error) {
	set.flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(without, f.Name) {
			return
		}
		value := f.Value.String()
		if slices.Contains([]string{"state-dir", "log-file", "trace", "permissions"}, f.Name) {
			var failed error
			value, failed = config.ResolvePath(filepath.Join(".", "flags"), value)
			err = errors.Join(err, failed)
		}
		flags = append(flags, "--"+f.Name+"="+value)
	})
	return flags, err
}

// agentsWith returns the agents that are known with another configuration.
func (set *settings) agentsWith(c config.Config) ([]profiles.Profile, error) {
	with := *set
	with.config = c
	return with.agents()
}

// workspaceWith returns the options for opening folders with another configuration.
func (set *settings) workspaceWith(c config.Config) (workspace.Options, error) {
	with := *set
	with.config = c
	return with.workspace()
}
