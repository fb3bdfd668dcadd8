package cli

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

func newPermissionsCheck(set *settings) *cobra.Command {
	roots := rootFlags{cwd: "."}
	command := takes(1, math.MaxInt, "a command",
		", such as: acp-agent permissions check go test ./...")
	return set.newCommand("check", command, needsState, flags{"cwd": &roots.cwd,
		"dir": &roots.dirs, "json": &set.json, "allow": nil, "permissions": nil},
		func(cmd *cobra.Command, args []string) error {
			where, err := roots.roots()
			if err != nil {
				return err
			}
			w, err := set.open(cmd.Context(), where)
			if err != nil {
				return usage.WithFlagNames(err, "cwd", "dir")
			}
			defer w.Close()
			line := args[0]
			if len(args) > 1 {
				line = text.ShellLine(args...)
			}
			action, _ := permission.At(w).Command(line, w.Root(0).Dir.String())
			checked, err := checkAction(set, w, action)
			if err != nil {
				return err
			}
			return set.print(checked, func() error { return checked.print(set.streams) })
		})
}

type checkReport struct {
	Decision permission.Effect `json:"decision"`
	Rule     string            `json:"rule,omitempty"`
	Why      string            `json:"why,omitempty"`
	Allowing string            `json:"allowingRule,omitempty"` // would allow it

	verdict permission.Verdict
}

func (r checkReport) print(s streams) error {
	err := terminal.Say(s.out, "%s", text.Printable(r.verdict.String()))
	if r.Allowing != "" && err == nil {
		err = terminal.Say(s.out, "this rule would allow it: %s", text.Printable(r.Allowing))
	}
	return err
}

// checkAction returns the decision about an action.
func checkAction(
	set *settings, w *workspace.Workspace, action permission.Action,
) (checkReport, error) {
	sources, err := set.sources(w)
	if err != nil {
		return checkReport{}, err
	}
	rules, err := sources.Rules()
	if err != nil {
		return checkReport{}, err
	}
	verdict := permission.Decide(action, rules)
	r := checkReport{Decision: verdict.Effect, Rule: verdict.Rule.String(),
		Why: verdict.Why, verdict: verdict}
	if rule, ok := permission.Offer(action, true); ok && verdict.Effect == permission.Ask {
		r.Allowing = rule.String()
	}
	return r, nil
}

// sources returns where the rules of a session with the roots of w come from.
func (set *settings) sources(w *workspace.Workspace) (*permission.Permits, error) {
	origins, err := set.worktrees().Origins()
	if err != nil {
		return nil, err
	}
	return permission.NewPermits(permission.NewSessionGrants(""), w, set.consents(), origins, set.permissionsFor), nil
}
