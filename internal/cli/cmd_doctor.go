package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// newDoctor returns the command that checks the installation.
func newDoctor(set *settings) *cobra.Command {
	cmd := set.newCommand("doctor", cobra.ArbitraryArgs, needsNothing,
		flags{"json": &set.json, "state-dir": nil, "store": nil, "sandbox": nil},
		func(cmd *cobra.Command, args []string) error {
			agents, command := args, []string(nil)
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				agents, command = args[:at], args[at:]
			}
			progress, own := terminal.NewProgress(set.err), *set
			own.log = nil // the findings say what is wrong
			e := examination{&own, func(subject string) {
				progress.Show("… checking %s", subject)
			}}
			findings := e.run(cmd.Context(), agents, command)
			progress.End()
			err := cmd.Context().Err()
			if err != nil {
				return err // what it interrupted says nothing
			}
			err = set.print(map[string]any{"findings": findings}, func() (err error) {
				for _, f := range findings {
					err = cmp.Or(err, terminal.Item(set.out, f.mark()+" ",
						f.Subject+": "+text.Plain(f.Text)))
				}
				return err
			})
			isBroken := func(f finding) bool { return f.State == broken }
			if err == nil && slices.ContainsFunc(findings, isBroken) {
				err = errors.New("some checks failed; see the lines marked ✗")
			}
			return err
		})
	cmd.ValidArgsFunction = set.completeAgents
	return cmd
}

// An examination checks an installation.
type examination struct {
	*settings
	begins func(subject string) // is called before each check that may take long
}

// run checks everything, and the agents with these names and of a command besides those of the
// configuration, which may be invalid.
func (e *examination) run(ctx context.Context, agents, command []string) []finding {
	findings := []finding{{"acp-agent", works,
		fmt.Sprintf("%s for %s/%s", ownVersion().Number, runtime.GOOS, runtime.GOARCH)}}
	findings = append(findings, judge("configuration",
		cmp.Or(e.config.Path, "none; acp-agent setup writes "+
			cmp.Or(config.DefaultPath(), "that of --config FILE")), e.invalid))
	if e.invalid != nil {
		return findings
	}
	e.begins("the stored sessions")
	findings = append(findings, e.examineStore(ctx)...)
	for _, w := range e.fileWarnings() {
		findings = append(findings, finding{w.path, doubtful, w.text})
	}
	if notify := e.config.NotifyCommand(nil); notify != nil {
		findings = append(findings, judge("notify", notify.Path, notify.Find()))
	}
	findings = append(findings, e.examineWorkspaces(ctx)...)
	findings = append(findings, e.examineRegistry()...)
	names := slices.Clone(agents)
	configured := slices.Sorted(maps.Keys(e.config.Agents))
	if e.config.Agent != "" {
		configured = append(configured, e.config.Agent)
	}
	for _, name := range configured {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		e.begins("agent " + name)
		findings = append(findings, e.examineAgent(ctx, name, nil)...)
	}
	if len(command) > 0 {
		e.begins("agent " + command[0])
		findings = append(findings, e.examineAgent(ctx, "", command)...)
	} else if len(names) == 0 {
		findings = append(findings, finding{"agents", works,
			"none configured: acp-agent setup chooses one, and acp-agent doctor NAME checks any"})
	}
	return append(findings, e.examineModels(ctx)...)
}

// A finding is the result of one check.
type finding struct {
	Subject string `json:"subject"`
	State   string `json:"state"`
	// Text says what was found, and what to do if something is wrong.
	Text string `json:"text"`
}

// The states of what was checked.
const works, doubtful, broken = "works", "doubtful", "broken"

// mark returns the sign that stands for the state.
func (f finding) mark() string {
	return map[string]string{works: "✓", doubtful: "!", broken: "✗"}[f.State]
}

// judge returns the finding of a check: err, or text if err is nil.
func judge(subject, text string, err error) finding {
	if err != nil {
		return finding{subject, broken, err.Error()}
	}
	return finding{subject, works, text}
}

// examineWorkspaces checks whether sessions with configured folders can be opened.
func (e *examination) examineWorkspaces(ctx context.Context) (findings []finding) {
	for i, w := range e.config.Workspaces {
		if len(w.Directories) == 0 {
			continue
		}
		f := finding{Subject: fmt.Sprintf("workspaces[%d]", i), State: works}
		if opened, _, err := e.openRoots(ctx, rootFlags{cwd: w.Cwd}); err != nil {
			f.State, f.Text = broken, fmt.Sprintf("no session opens in %s: %v", w.Cwd, err)
		} else {
			f.Text = fmt.Sprintf("sessions in %s have %s", w.Cwd,
				text.Count(opened.Roots().Len(), "folder", "folders"))
			for _, dir := range opened.Roots().ReadOnly() {
				f.Text += ", read-only " + text.Printable(dir.String())
			}
			if n := len(worktree.Copies(opened.Roots().Cwd())); n > 0 {
				f.Text += ", and so have those in its " + text.Count(n, "worktree", "worktrees")
			}
			opened.Close()
		}
		if _, missing := os.Stat(w.Cwd); errors.Is(missing, fs.ErrNotExist) {
			f.State = doubtful // it may be a project that is gone
		}
		findings = append(findings, f)
	}
	return findings
}

// examineRegistry checks the list of agents, if there is one.
func (e *examination) examineRegistry() (findings []finding) {
	r, leftOut, err := e.registry()
	if err != nil || r != nil {
		findings = append(findings, judge("registry", text.Count(len(r), "agent", "agents"), err))
	}
	for _, problem := range leftOut {
		findings = append(findings, finding{"registry", doubtful,
			"left out " + text.Line(problem.Error(), 300)})
	}
	return findings
}

// examineStore opens the session store, reads a session if there is one, and checks that the store
// is writable.
func (e *examination) examineStore(ctx context.Context) []finding {
	const subject = "sessions"
	store, name, err := e.openStore(e.log, 0)
	if err != nil {
		return []finding{judge(subject, "", err)}
	}
	switch store := store.(type) {
	case *postgres.Store:
		defer store.Close()
		return examineDatabase(ctx, store, subject)
	case *sqlite.Store:
		if err = store.CheckDir(); err == nil && sqlite.Exists(name) {
			_, err = store.List(ctx, sessionstore.Query{Limit: 1})
		}
	}
	return []finding{judge(subject, name, cmp.Or(err, store.Close()))}
}

// examineDatabase checks the database with the sessions.
func examineDatabase(ctx context.Context, store *postgres.Store, subject string) []finding {
	h, err := store.Check(ctx)
	text := fmt.Sprintf("%s: PostgreSQL %s, schema version %d, answers in %v", store, h.Server,
		h.Schema, h.RoundTrip.Round(10*time.Microsecond))
	findings := []finding{judge(subject, text, err)}
	if err != nil {
		return findings
	}
	add := func(state, text string) {
		findings = append(findings, finding{subject, state, text})
	}
	if h.ReadOnly {
		add(broken, "the database can only be read; give the address of its primary, or of all "+
			"servers with target_session_attrs=read-write")
	}
	if !h.Protected {
		add(doubtful, "the connection may be unencrypted, or the database another one than it "+
			"says: add sslmode=verify-full to the address")
	}
	if !h.RowSecurity {
		add(doubtful, "row-level security does not apply to the user "+h.User+": use one that is "+
			"neither a superuser nor has BYPASSRLS")
	}
	return findings
}

// examineModels asks the servers of all configured models which models they offer.
func (e *examination) examineModels(ctx context.Context) []finding {
	var findings []finding
	for _, id := range e.config.ModelIDs() {
		e.begins("model " + id)
		reports, err := inventory.Models(ctx, e.config, []string{id})
		if err != nil {
			findings = append(findings, judge("model "+id, "", err))
		}
		for _, r := range reports {
			findings = append(findings, findingOf(r))
		}
	}
	return findings
}

// findingOf returns the finding about a model.
func findingOf(r inventory.Model) finding {
	f := finding{"model " + r.ID, works, fmt.Sprintf("%s at %s", r.Name, r.BaseURL)}
	switch {
	case r.Error != "":
		f.State, f.Text = broken, fmt.Sprintf("%s %v", r.BaseURL, r.Answer)
	case r.Unlisted:
		f.State = doubtful
		f.Text = fmt.Sprintf("%s %v, so %q could not be checked; to try it: acp-agent run "+
			"--model %s hello", r.BaseURL, r.Answer, r.Name, r.ID)
	case r.Lacking():
		f.State = broken
		f.Text = fmt.Sprintf("%s does not offer %q; acp-agent models %s shows what it offers",
			r.BaseURL, r.Name, r.ID)
	}
	return f
}
