package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/setup"
	"github.com/acp-agent/acp-agent/internal/usage"
)

func newSetup(set *settings) *cobra.Command {
	o := setup.Options{In: set.in, Out: set.out, Err: set.err}
	var dirs []string
	cmd := set.newCommand("setup", cobra.ArbitraryArgs, needsNothing, flags{"cwd": &o.Cwd,
		"dir": &dirs, "editor": &o.Editor, "yes": &o.Yes,
		"agent": nil, "model": nil, "sandbox": nil, "allow": nil},
		func(cmd *cobra.Command, args []string) error {
			words, command := splitAtDash(cmd, args)
			if len(words) > 0 {
				return usage.Errorf("setup takes flags, such as --editor zed --agent claude, and "+
					"the command of an agent after -- (got %q)", words[0])
			}
			if err := exclusive(cmd, "agent model"); err != nil {
				return err
			}
			if err := set.checkSandbox(); err != nil {
				return err // although other settings may be invalid
			}
			o.Command, o.Agents = command, set.profiles
			o.Chosen = set.flags.Changed("agent") || set.flags.Changed("model")
			o.Agent, o.Model, o.Sandbox = set.agent, set.model, set.sandbox
			o.Path = cmp.Or(set.configPath, os.Getenv("ACP_AGENT_CONFIG"), config.DefaultPath())
			o.Dirs, o.KeepDirs, o.Allow = dirs, set.flags.Changed("keep-dirs"), set.allow
			o.Rules = set.flags.Changed("allow") || set.flags.Changed("permissions")
			var err error
			o.Workspace, err = set.workspace()
			if err = cmp.Or(err, makeAbsolute(set)); err != nil {
				return err
			}
			answered := []string{"agent", "model", "dir", "keep-dirs", "allow"} // or asked
			o.Arguments = set.given(func(name string) bool { return !slices.Contains(answered, name) })
			err = setup.Run(cmd.Context(), o)
			if errors.Is(err, context.Canceled) {
				fmt.Fprintln(set.err, "\nacp-agent: interrupted; nothing was written")
				return &statusError{statusInterrupted}
			}
			return err
		})
	tolerate(set, cmd) // editors append setup to the arguments that they are configured with
	return cmd
}

// makeAbsolute makes the paths of settings absolute, as an editor may start acp-agent anywhere.
func makeAbsolute(set *settings) (err error) {
	for _, path := range []*string{&set.stateDir, &set.logFile, &set.trace, &set.rules} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	return err
}
