package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/cli/doctor"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// newDoctor returns the command that checks the installation.
func newDoctor(set *settings) *cobra.Command {
	var e doctor.Examination
	cmd := &cobra.Command{
		Use:               "doctor [AGENT]... [-- COMMAND ARGS...]",
		Short:             "Check the configuration, the stored sessions, agents and models",
		ValidArgsFunction: set.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			e.Agents = args
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				e.Agents, e.Command = args[:at], args[at:]
			}
			set.describe(&e)
			progress := terminal.NewProgress(set.err)
			e.Begins = func(subject string) { progress.Show("… checking %s", subject) }
			findings := e.Run(cmd.Context())
			progress.End()
			err := cmd.Context().Err()
			if err != nil {
				return err // what it interrupted says nothing
			}
			err = set.print(map[string]any{"findings": findings}, func() (err error) {
				for _, f := range findings {
					err = cmp.Or(err, terminal.Item(set.out, f.Mark()+" ",
						f.Subject+": "+text.Plain(f.Text)))
				}
				return err
			})
			broken := func(f doctor.Finding) bool { return f.State == doctor.Broken }
			if err == nil && slices.ContainsFunc(findings, broken) {
				err = errors.New("some checks failed; see the lines marked ✗")
			}
			return err
		},
	}
	set.accept(cmd, "state-dir", "store", "json")
	mode := *set.flags.Lookup("sandbox")
	mode.Usage = "start the agents in the sandbox, with `MODE` write or strict"
	cmd.Flags().AddFlag(&mode)
	return cmd
}

// describe fills in what the settings say. They may be invalid.
func (set *settings) describe(e *doctor.Examination) {
	e.Invalid = set.invalid
	e.Version, e.Config, e.Sandbox = ownVersion().Number, set.config, set.sandbox
	for _, w := range set.fileWarnings() {
		f := doctor.Finding{Subject: w.path, State: doctor.Doubtful, Text: w.text}
		e.Files = append(e.Files, f)
	}
	silent := *set // the findings say what is wrong with the files
	silent.err = io.Discard
	e.OpenStore, e.Registry, e.AgentCommand = silent.openStore, set.registry, set.agentCommand
	e.OpenRoots = func(ctx context.Context, cwd string) (*workspace.Workspace, error) {
		w, _, err := set.openRoots(ctx, rootFlags{cwd: cwd})
		return w, err
	}
}
