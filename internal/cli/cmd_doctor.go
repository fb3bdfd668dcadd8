package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/cli/doctor"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// newDoctor returns the command that checks the installation.
func newDoctor(s streams, set *settings) *cobra.Command {
	var asJSON bool
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
			begins, done := showProgress(s.err)
			e.Begins = begins
			findings := e.Run(cmd.Context())
			done()
			if asJSON {
				if err := writeJSON(s.out, map[string]any{"findings": findings}); err != nil {
					return err
				}
			} else {
				for _, f := range findings {
					if err := terminal.Item(s.out, f.Mark()+" ",
						f.Subject+": "+text.Plain(f.Text)); err != nil {
						return err
					}
				}
			}
			broken := func(f doctor.Finding) bool { return f.State == doctor.Broken }
			if slices.ContainsFunc(findings, broken) {
				return errors.New("some checks failed; see the lines marked ✗")
			}
			return nil
		},
	}
	cmd.Flags().Var((*listValue)(&e.Servers), "mcp-config",
		"also start the MCP servers in `FILE`; can be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	set.accept(cmd, "state-dir", "store")
	mode := *set.flags.Lookup("sandbox")
	mode.Usage = "start the agents in the sandbox, with `MODE` write or strict"
	cmd.Flags().AddFlag(&mode)
	return cmd
}

// describe fills in what the settings say. They may be invalid.
func (set *settings) describe(e *doctor.Examination) {
	e.Invalid = set.load()
	e.Version, e.Config, e.Sandbox = ownVersion().Number, set.config, set.sandbox
	for _, w := range set.fileWarnings() {
		f := doctor.Finding{Subject: w.path, State: doctor.Doubtful, Text: w.text}
		e.Files = append(e.Files, f)
	}
	e.Withheld = set.withheld()
	e.OpenStore, e.Registry, e.Workspace = set.openStore, set.registry, set.workspace
	e.AgentCommand, e.MCPPolicy = set.agentCommand, set.mcpPolicy
	e.OpenRoots = func(ctx context.Context, cwd string) (*workspace.Workspace, error) {
		w, _, err := set.openRoots(ctx, rootFlags{cwd: cwd})
		return w, err
	}
}

// showProgress returns a function that shows on w what doctor waits for, if w is a terminal, and
// one that erases it.
func showProgress(w io.Writer) (begins func(subject string), done func()) {
	width := terminal.Width(w)
	if width == 0 || !terminal.ObeysEscapes() {
		return func(string) {}, func() {}
	}
	const erased = "\r\x1b[K"
	begins = func(subject string) {
		fmt.Fprint(w, erased+terminal.Cut("… checking "+text.Plain(subject), width-1))
	}
	return begins, func() { fmt.Fprint(w, erased) }
}
