package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/conform"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/usage"
)

type conformFlags struct {
	strict, list, client bool
	junit                string
	patience             age
	o                    conform.Options
}

func newConform(set *settings) *cobra.Command {
	f := conformFlags{patience: age(20 * time.Second)}
	cmd := set.newCommand("conform", cobra.ArbitraryArgs, needsConfig, flags{
		"junit": &f.junit, "strict": &f.strict, "client": &f.client, "list": &f.list,
		"prompt": &f.o.Prompt, "draft": &f.o.Draft, "timeout": &f.patience, "json": &set.json,
		"sandbox": nil},
		func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list:
				return f.printChecks(set)
			case f.client && set.interactive():
				return f.printClient(set)
			case f.client:
				return f.serveClient(cmd.Context(), set)
			}
			if err := f.choose(set, cmd.ArgsLenAtDash(), args); err != nil {
				return err
			}
			if err := f.checkJUnit(); err != nil {
				return err
			}
			f.o.Patience = time.Duration(f.patience)
			progress := terminal.NewProgress(set.err)
			f.o.Begins = func(id string) { progress.Show("… checking %s", id) }
			report, err := conform.Run(cmd.Context(), f.o)
			progress.End()
			switch {
			case err != nil:
				return usage.Errorf("%v", err)
			case cmd.Context().Err() != nil:
				return cmd.Context().Err()
			}
			return f.print(set, report)
		})
	cmd.ValidArgsFunction = set.completeAgents
	cmd.Flags().StringSliceVar(&f.o.Only, "only", nil, "")
	return cmd
}

// printClient prints what an editor is configured with, so that it checks itself.
func (f *conformFlags) printClient(set *settings) error {
	flags := []string{"--client"}
	if f.junit != "" {
		path, err := filepath.Abs(f.junit)
		if err != nil {
			return err
		}
		flags = append(flags, "--junit", path)
	}
	if set.json {
		flags = append(flags, "--json")
	}
	self := set.self("conform", flags...)
	return cmp.Or(
		terminal.Say(set.out, "Configure this agent in your editor and open a conversation with "+
			"it. It answers with what the editor does, and what to try next:\n"),
		writeJSON(set.out, map[string]any{"command": self.Path, "args": self.Args}))
}

// serveClient is the agent of an editor, whose prompts it answers with the report.
func (f *conformFlags) serveClient(ctx context.Context, set *settings) error {
	show := conform.Report.Markdown
	if set.json {
		show = func(r conform.Report) string {
			text, _ := json.Marshal(r) // it has nothing that JSON has not
			return string(text)
		}
	}
	if err := f.checkJUnit(); err != nil {
		return err
	}
	report, err := conform.ServeClient(ctx, set.in, set.out, ownVersion().Number, show)
	return errors.Join(err, f.writeJUnit(report))
}

// checkJUnit checks that the file for CI systems can be written, if one is wanted.
func (f *conformFlags) checkJUnit() error {
	if f.junit == "" {
		return nil
	}
	file, err := os.OpenFile(f.junit, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return usage.Errorf("--junit: %v", namedfile.ExplainNew(err))
	}
	return file.Close()
}

// writeJUnit writes the file for CI systems, if one is wanted.
func (f *conformFlags) writeJUnit(report conform.Report) error {
	if f.junit == "" {
		return nil
	}
	text, err := report.JUnit(f.strict)
	if err != nil {
		return err
	}
	return os.WriteFile(f.junit, text, 0o600)
}

func (f *conformFlags) printChecks(set *settings) error {
	checks, err := conform.Checks(f.o.Only)
	if err != nil {
		return usage.Errorf("%v", err)
	}
	return set.print(map[string]any{"checks": checks}, func() error {
		table := terminal.NewTable(set.out, "CHECK", "LEVEL", "WHAT THE AGENT DOES")
		for _, c := range checks {
			table.Row(c.ID, c.Level, c.Sentence)
		}
		return table.Print()
	})
}

// choose sets the agent: that of a name, or of the command after the dash.
func (f *conformFlags) choose(set *settings, dash int, args []string) error {
	name := ""
	if dash != 0 && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if name == "" && len(args) == 0 {
		return usage.Errorf(
			"put the command of the agent after --: acp-agent conform -- COMMAND ARGS")
	}
	command, profile, err := set.command(name, args)
	if err != nil {
		return usage.Errorf("%v", err)
	}
	if set.sandbox != "" {
		f.o.Restrict = func(c process.Command, folders []string) (process.Command, error) {
			roots, err := rootsInSandbox(folders)
			if err != nil {
				return c, err
			}
			if config.IsPath(c.Path) {
				if c.Path, err = filepath.Abs(c.Path); err != nil {
					return c, err
				}
			}
			c.Dir = folders[0] // it may write there
			return profile.Restrict(c, roots)
		}
	}
	f.o.Command, f.o.Version = command, ownVersion().Number
	return nil
}

// print prints a report. The error says that the agent has failed.
func (f *conformFlags) print(set *settings, report conform.Report) error {
	err := errors.Join(set.print(report, func() error { return report.Print(set.out) }),
		f.writeJUnit(report))
	switch {
	case err != nil:
		return err
	case report.Failure != "":
		return errors.New(report.Failure)
	case report.Failed(f.strict):
		return fmt.Errorf("%d MUST and %d SHOULD fail", report.Summary.FailMust,
			report.Summary.FailShould)
	}
	return nil
}
