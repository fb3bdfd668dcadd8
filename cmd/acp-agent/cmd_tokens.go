package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/remote"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// newTokens returns the commands for the users of acp-agent serve.
func newTokens(s streams, set *settings) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "tokens",
		Short: "Let users in to acp-agent serve",
		Long: `Each user of acp-agent serve has a name and a token. The name owns the user's
sessions: a new token for the same name has the same ones.`,
	}, newTokensAdd(s, set), newTokensList(s, set), newTokensRevoke(s, set))
}

func (set *settings) tokens() (*remote.Tokens, error) {
	dir, err := set.stateDirectory()
	if err != nil {
		return nil, err
	}
	return remote.NewTokens(filepath.Join(dir, "tokens")), nil
}

func newTokensAdd(s streams, set *settings) *cobra.Command {
	var within []string
	var agent string
	cmd := &cobra.Command{
		Use:   "add NAME --within DIR...",
		Short: "Add a user and print the token",
		Long: `add prints a token with which NAME can connect. It is not stored and cannot be
shown again. The folders of NAME's sessions must be in one of the directories
of --within.

An agent behind acp-agent serve runs as the user that started it: --within
limits which folders a session can have, not what the agent can reach from
them.`,
		Example: "  acp-agent tokens add ana --within /srv/ana --within /srv/shared",
		Args:    oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(within) == 0 {
				return usagef("name the directories for the folders of %s: --within DIR",
					text.Name(args[0]))
			}
			dirs, err := absolute(within...)
			if err != nil {
				return err
			}
			for _, dir := range dirs.All() {
				if info, err := os.Stat(dir.String()); err != nil || !info.IsDir() {
					return fmt.Errorf("--within: %s is not a folder", text.Printable(dir.String()))
				}
			}
			if agent != "" {
				if _, _, err := set.agentCommand(agent, nil); err != nil {
					return usagef("--agent: %v", err)
				}
			}
			tokens, err := set.tokens()
			if err != nil {
				return err
			}
			secret, err := tokens.Add(remote.Token{Name: args[0], Within: dirs, Agent: agent,
				Created: time.Now().UTC()})
			if errors.Is(err, remote.ErrTokenExists) {
				return fmt.Errorf("%s has a token already; acp-agent tokens revoke %[1]s removes it", args[0])
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.out, secret)
			return err
		},
	}
	cmd.Flags().Var((*listValue)(&within), "within", "allow folders in `DIR`; can be repeated")
	cmd.Flags().StringVar(&agent, "agent", "",
		"let the agent `NAME` answer this user, instead of the one of acp-agent serve")
	set.accept(cmd, "state-dir")
	return cmd
}

// oneName accepts the name of a user.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s needs one NAME (got %d arguments)", words(cmd), len(args))
	}
	return nil
}

func newTokensList(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the users who have a token",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			tokens, err := set.tokens()
			if err != nil {
				return err
			}
			list, err := tokens.List()
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tCREATED (UTC)\tAGENT\tWITHIN")
			for _, t := range list {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.Name, t.Created.Format(time.DateTime), cmp.Or(t.Agent, "-"),
					folders(t.Within.All(), workspace.Dir.String))
			}
			return table.Flush()
		},
	}
	set.accept(cmd, "state-dir")
	return cmd
}

func newTokensRevoke(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Remove a user's token, and end the user's connections",
		Long: `revoke removes the token of NAME. Connections and turns of NAME end within a
second. The sessions of NAME stay stored.`,
		Args: oneName,
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := set.tokens()
			if err != nil {
				return err
			}
			err = tokens.Revoke(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s has no token; acp-agent tokens list shows who has",
					text.Name(args[0]))
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.out, "revoked", args[0])
			return err
		},
	}
	set.accept(cmd, "state-dir")
	return cmd
}
