package main

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
)

const sandboxHelp = `sandbox runs a command that changes files only in the folders that you name, the
temporary directory and /dev/shm, as an agent does with {"sandbox": "write"}. So does everything that
it starts. With --sandbox strict it also reads only there, in directories of the system and of PATH.
It needs Linux 6.2 or newer.`

// newSandbox returns the command that runs another one in the sandbox.
func newSandbox(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sandbox [--dir DIR...] -- COMMAND ARGS...",
		Short:   "Run a command that changes files only in some folders",
		Long:    sandboxHelp,
		Example: "  acp-agent sandbox --dir . -- make test",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
				return usagef("put the command to run after --: acp-agent sandbox --dir DIR -- COMMAND")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			mode, err := sandbox.ParseMode(cmp.Or(set.sandbox, sandbox.Write.String()))
			if err != nil {
				return usagef("--sandbox: %v", err)
			}
			var roots []string
			for _, dir := range set.dirs {
				real, err := filepath.Abs(dir)
				if err == nil {
					real, err = filepath.EvalSymlinks(real)
				}
				if err != nil {
					return usagef("--dir: %v", err)
				}
				roots = append(roots, real)
			}
			command, err := process.Command{Path: args[0], Args: args[1:]}.Restrict(
				sandbox.Settings{Mode: mode}, roots)
			if err != nil {
				return err
			}
			err = process.RunInTerminal(cmd.Context(), command, s.in, s.out, s.err)
			if exit, ok := errors.AsType[*process.ExitError](err); ok {
				return &statusError{exit.Code}
			}
			return err
		},
	}
	set.accept(cmd, "dir", "sandbox")
	return cmd
}
