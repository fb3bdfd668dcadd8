package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

func newPermissionsCheck(s streams, set *settings) *cobra.Command {
	var roots rootFlags
	cmd := &cobra.Command{
		Use:   "check [--cwd DIR] [--dir DIR]... [-- COMMAND...]",
		Short: "Say what the rules decide about a command or a request",
		RunE: func(cmd *cobra.Command, args []string) error {
			where, err := roots.roots()
			if err != nil {
				return err
			}
			options, err := set.workspace()
			if err != nil {
				return err
			}
			w, err := workspace.Open(cmd.Context(), where, options)
			if err != nil {
				return usage.WithFlagNames(err, "cwd", "dir")
			}
			defer w.Close()
			action, err := set.action(cmd.Context(), s.in, w, args)
			if err != nil {
				return err
			}
			return set.check(s, w, action)
		},
	}
	roots.define(cmd)
	set.accept(cmd, "state-dir", "allow", "permissions", "agent")
	return cmd
}

// check prints the decision about an action.
func (set *settings) check(s streams, w *workspace.Workspace, action permission.Action) error {
	sources, err := set.sources(w)
	if err != nil {
		return err
	}
	rules, err := sources.Rules(w)
	if err != nil {
		return err
	}
	verdict := permission.Decide(action, rules)
	_, err = fmt.Fprintln(s.out, text.Printable(verdict.String()))
	if rule, ok := permission.Offer(action, true); ok && err == nil && verdict.Effect == permission.Ask {
		_, err = fmt.Fprintln(s.out, "this rule would allow it:", text.Printable(rule.String()))
	}
	return err
}

// sources returns where the rules of a session with the roots of w come from.
func (set *settings) sources(w *workspace.Workspace) (s *permission.Permits, err error) {
	consents, err := set.consents()
	if err != nil {
		return s, err
	}
	worktrees, err := set.worktrees()
	if err != nil {
		return s, err
	}
	origins, err := worktrees.Origins()
	if err != nil {
		return s, err
	}
	return permission.NewPermits(w, consents, origins, set.permissionsFor), nil
}

// action returns the action of a command, or of the request in r if there is none.
func (set *settings) action(
	ctx context.Context, r io.Reader, w *workspace.Workspace, words []string,
) (permission.Action, error) {
	if len(words) > 0 {
		line := words[0]
		if len(words) > 1 {
			quoted := make([]string, len(words))
			for i, word := range words {
				quoted[i] = text.ShellWord(word)
			}
			line = strings.Join(quoted, " ")
		}
		a, _ := permission.Command(w, line, w.Root(0).Dir.String())
		return a, nil
	}
	const most = 16 << 20
	input, err := io.ReadAll(io.LimitReader(r, most))
	if err != nil {
		return permission.Action{}, err
	}
	params := json.RawMessage(input[max(0, strings.IndexByte(string(input), '{')):])
	if inner := strictjson.Find(params, "params"); inner != nil {
		params = inner
	}
	request, err := permission.ParseRequest(params)
	if err != nil || !strictjson.IsObject(strictjson.Find(params, "toolCall")) {
		return permission.Action{}, errors.New("standard input has no session/request_permission")
	}
	request.Agent = set.agent
	catalog, err := discovery.Scan(ctx, w, discovery.Options{})
	if err != nil {
		return permission.Action{}, err
	}
	return request.Action(ctx, permission.Call{}, permission.Place{Workspace: w, Catalog: catalog,
		Inside: func(path string) error { return permission.HandOver(w, path) }}), nil
}
