package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/worktree"
)

// newWorktreeCommit returns the command that commits the changes in all worktrees of a task.
func newWorktreeCommit(set *settings) *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use:   "commit NAME -m TEXT",
		Short: "Commit what was changed in all worktrees of a task",
		Args:  takes(1, 1, "one NAME", "; acp-agent worktree list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if message == "" {
				return usage.Errorf("worktree commit needs a message: -m TEXT")
			}
			task, err := set.worktrees().Find(args[0])
			if err != nil {
				return err
			}
			made, err := task.Commit(cmd.Context(), message)
			if errors.Is(err, worktree.ErrNothing) {
				set.note("%v", err)
				return nil
			}
			if err != nil {
				return err
			}
			for _, r := range made {
				fmt.Fprintf(set.out, "committed in %s\n", text.Printable(r.Path))
			}
			for _, r := range made {
				if push := r.Push(cmd.Context()); push != "" {
					fmt.Fprintf(set.out, "to push it: %s\n", push)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "the message, `TEXT`")
	set.accept(cmd, "state-dir")
	return cmd
}
