package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func newSessionsTransfer(set *settings) *cobra.Command {
	var name string // --to
	var to target
	cmd := sessionCommand(set, "transfer", flags{"to": &name}, 1,
		func(ctx context.Context, one named) error {
			return transferSession(ctx, set, one.store, one.Session, to)
		})
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		to, err = targetOf(set, name, args[1:])
		return err
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		names, _ := splitAtDash(cmd, args)
		return takesSessions(1)(cmd, names)
	}
	return cmd
}

// target is the agent that a session is transferred to.
type target struct {
	agent   sessionstore.Agent
	command string // what an editor runs
	lacks   error  // why the agent cannot run here, or nil
}

// targetOf returns the agent that has the name of --to or that command starts.
func targetOf(set *settings, name string, command []string) (target, error) {
	switch {
	case name == "" && len(command) == 0:
		return target{},
			usage.Errorf("name the agent for the session, such as --to gemini, " +
				"or give its command line after --")
	case name == explore.Kind:
		return target{agent: sessionstore.Agent{Kind: explore.Kind},
			command: choice{}.line("")}, nil
	case name == model.Kind:
		to := target{agent: sessionstore.Agent{Kind: model.Kind},
			command: choice{model: "NAME"}.line("")}
		if len(set.config.Models) == 0 {
			to.lacks = errNoModel
		}
		return to, nil
	}
	start, profile, err := set.command(name, command)
	if err != nil {
		return target{}, usage.Errorf("--to: %v", err)
	}
	line := choice{agent: name}.line(text.ShellLine(command...))
	return target{proxy.Owner(start, profile), line, profile.CheckInstalled(start)}, nil
}

// transferSession copies a session for another agent and prints the copy's id.
func transferSession(
	ctx context.Context, set *settings, store sessionstore.Store, source sessionstore.Session,
	to target,
) error {
	id := source.ID
	if source.Agent == to.agent {
		return fmt.Errorf(
			"session %s already belongs to this agent; to copy it, use acp-agent run --fork %[1]s",
			id)
	}
	empty := true
	for _, err := range store.Finished(ctx, id) {
		if err != nil {
			return err
		}
		empty = false
		break
	}
	if empty {
		return fmt.Errorf(
			"session %s has no conversation here to pass on; if its agent has one, load the "+
				"session with that agent first", id)
	}
	copied := sessionstore.Session{ID: sessionstore.NewID(), Agent: to.agent, Keys: source.Keys}
	if to.agent.Kind == proxy.Kind {
		copied.State = proxy.StateFrom(cmp.Or(source.Agent.Profile, source.Agent.Kind))
	}
	if _, err := store.Fork(ctx, id, copied); err != nil {
		return err
	}
	set.note("load it in an editor that runs: %s", to.command)
	if to.lacks != nil {
		set.note("%v", to.lacks)
	}
	_, err := fmt.Fprintln(set.out, copied.ID)
	return err
}
