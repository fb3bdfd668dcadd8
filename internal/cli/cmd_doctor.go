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

func newDoctor(set *settings) *cobra.Command {
	cmd := set.newCommand("doctor", cobra.ArbitraryArgs, needsNothing,
		flags{"json": &set.json, "state-dir": nil, "store": nil, "sandbox": nil},
		func(cmd *cobra.Command, args []string) error {
			agents, command := splitAtDash(cmd, args)
			progress, own := terminal.NewProgress(set.err), *set
			own.log = nil // the findings say what is wrong
			e := examination{settings: &own, progress: progress}
			e.run(cmd.Context(), agents, command)
			progress.End()
			if err := cmd.Context().Err(); err != nil {
				return err // what it interrupted says nothing
			}
			err := set.print(map[string]any{"findings": e.findings}, func() (err error) {
				for _, f := range e.findings {
					err = cmp.Or(err, terminal.Item(set.out, marks[f.State]+" ",
						f.Subject+": "+text.Plain(f.Text)))
				}
				return err
			})
			isBroken := func(f finding) bool { return f.State == broken }
			if err == nil && slices.ContainsFunc(e.findings, isBroken) {
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
	progress *terminal.Progress // names what may take long
	findings []finding
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

// marks are the signs that stand for the states.
var marks = map[string]string{works: "✓", doubtful: "!", broken: "✗"}

// report adds a finding.
func (e *examination) report(subject, state, text string) {
	e.findings = append(e.findings, finding{subject, state, text})
}

// judge adds the finding of a check: err, or text if err is nil.
func (e *examination) judge(subject, text string, err error) {
	if err != nil {
		e.report(subject, broken, err.Error())
	} else {
		e.report(subject, works, text)
	}
}

// begins says that a check begins which may take long.
func (e *examination) begins(subject string) { e.progress.Show("… checking %s", subject) }

// run checks everything, and the agents with these names and of a command besides those of the
// configuration, which may be invalid.
func (e *examination) run(ctx context.Context, agents, command []string) {
	e.report("acp-agent", works,
		fmt.Sprintf("%s for %s/%s", ownVersion().Number, runtime.GOOS, runtime.GOARCH))
	e.judge("configuration", cmp.Or(e.config.Path, "none; acp-agent setup writes "+
		cmp.Or(config.DefaultPath(), "that of --config FILE")), e.invalid)
	if e.invalid != nil {
		return
	}
	e.begins("the stored sessions")
	e.examineStore(ctx)
	for _, w := range e.fileWarnings() {
		e.report(w.path, doubtful, w.text)
	}
	if notify := e.config.NotifyCommand(nil); notify != nil {
		e.judge("notify", notify.Path, notify.Find())
	}
	e.examineWorkspaces(ctx)
	e.examineRegistry()
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
		e.examineAgent(ctx, name, nil)
	}
	if len(command) > 0 {
		e.begins("agent " + command[0])
		e.examineAgent(ctx, "", command)
	} else if len(names) == 0 {
		e.report("agents", works,
			"none configured: acp-agent setup chooses one, and acp-agent doctor NAME checks any")
	}
	e.examineModels(ctx)
}

// examineWorkspaces checks whether sessions with configured folders can be opened.
func (e *examination) examineWorkspaces(ctx context.Context) {
	for i, w := range e.config.Workspaces {
		if len(w.Directories) == 0 {
			continue
		}
		state, said := works, ""
		if opened, _, err := e.openRoots(ctx, rootFlags{cwd: w.Cwd}); err != nil {
			state, said = broken, fmt.Sprintf("no session opens in %s: %v", w.Cwd, err)
		} else {
			said = fmt.Sprintf("sessions in %s have %s", w.Cwd,
				text.Count(opened.Roots().Len(), "folder", "folders"))
			for _, dir := range opened.Roots().ReadOnly() {
				said += ", read-only " + text.Printable(dir.String())
			}
			if n := len(worktree.Copies(opened.Roots().Cwd())); n > 0 {
				said += ", and so have those in its " + text.Count(n, "worktree", "worktrees")
			}
			opened.Close()
		}
		if _, missing := os.Stat(w.Cwd); errors.Is(missing, fs.ErrNotExist) {
			state = doubtful // it may be a project that is gone
		}
		e.report(fmt.Sprintf("workspaces[%d]", i), state, said)
	}
}

// examineRegistry checks the list of agents, if there is one.
func (e *examination) examineRegistry() {
	r, leftOut, err := e.registry()
	if err != nil || r != nil {
		e.judge("registry", text.Count(len(r), "agent", "agents"), err)
	}
	for _, problem := range leftOut {
		e.report("registry", doubtful, "left out "+text.Line(problem.Error(), 300))
	}
}

// examineStore opens the session store, reads a session if there is one, and checks that the store
// is writable.
func (e *examination) examineStore(ctx context.Context) {
	store, name, err := e.openStore(e.log, 0)
	if err != nil {
		e.judge("sessions", "", err)
		return
	}
	switch store := store.(type) {
	case *postgres.Store:
		defer store.Close()
		e.examineDatabase(ctx, store)
	case *sqlite.Store:
		if err = store.CheckDir(); err == nil && sqlite.Exists(name) {
			_, err = store.List(ctx, sessionstore.Query{Limit: 1})
		}
		e.judge("sessions", name, cmp.Or(err, store.Close()))
	}
}

// examineDatabase checks the database with the sessions.
func (e *examination) examineDatabase(ctx context.Context, store *postgres.Store) {
	h, err := store.Check(ctx)
	e.judge("sessions", fmt.Sprintf("%s: PostgreSQL %s, schema version %d, answers in %v", store,
		h.Server, h.Schema, h.RoundTrip.Round(10*time.Microsecond)), err)
	if err != nil {
		return
	}
	if h.ReadOnly {
		e.report("sessions", broken, "the database can only be read; give the address of its "+
			"primary, or of all servers with target_session_attrs=read-write")
	}
	if !h.Protected {
		e.report("sessions", doubtful, "the connection may be unencrypted, or the database "+
			"another one than it says: add sslmode=verify-full to the address")
	}
	if !h.RowSecurity {
		e.report("sessions", doubtful, "row-level security does not apply to the user "+h.User+
			": use one that is neither a superuser nor has BYPASSRLS")
	}
}

// examineModels asks the servers of all configured models which models they offer.
func (e *examination) examineModels(ctx context.Context) {
	for _, id := range e.config.ModelIDs() {
		e.begins("model " + id)
		reports, err := inventory.Models(ctx, e.config, []string{id})
		if err != nil {
			e.judge("model "+id, "", err)
		}
		for _, r := range reports {
			e.reportModel("model "+r.ID, r)
		}
	}
}

func (e *examination) reportModel(subject string, r inventory.Model) {
	switch {
	case r.Error != "":
		e.report(subject, broken, fmt.Sprintf("%s %v", r.BaseURL, r.Answer))
	case r.Unlisted:
		e.report(subject, doubtful, fmt.Sprintf("%s %v, so %q could not be checked; to try it: "+
			"acp-agent run --model %s hello", r.BaseURL, r.Answer, r.Name, r.ID))
	case r.Lacking():
		e.report(subject, broken, fmt.Sprintf("%s does not offer %q; acp-agent models %s shows "+
			"what it offers", r.BaseURL, r.Name, r.ID))
	default:
		e.report(subject, works, fmt.Sprintf("%s at %s", r.Name, r.BaseURL))
	}
}
