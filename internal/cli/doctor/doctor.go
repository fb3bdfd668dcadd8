// Package doctor checks an installation: the configuration, the stored sessions, folders, agents
// and models. An [Examination] has what the command line knows of them.
package doctor

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

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/cli/registry"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// An Examination says what to check, and what the command line and the configuration say.
type Examination struct {
	Agents  []string // by name, besides those of Config
	Command []string // of another agent, or nil
	// Begins is called before each check that may take long.
	Begins func(subject string)

	Version string // of acp-agent
	Config  config.Config
	Invalid error     // why Config cannot be used, or nil
	Sandbox string    // --sandbox
	Files   []Finding // about who can change the files of acp-agent

	OpenStore    func() (store sessionstore.Shared, name string, err error)
	OpenRoots    func(ctx context.Context, cwd string) (*workspace.Workspace, error)
	Registry     func() (registry.Registry, error)
	AgentCommand func(name string, args []string) (process.Command, profiles.Profile, error)
}

// Run checks everything. The configuration may be invalid.
func (e *Examination) Run(ctx context.Context) []Finding {
	findings := []Finding{{"acp-agent", Works,
		fmt.Sprintf("%s for %s/%s", e.Version, runtime.GOOS, runtime.GOARCH)}}
	if _, wrong := sandbox.ParseMode(cmp.Or(e.Sandbox, sandbox.Off.String())); wrong != nil {
		return append(findings, judge("--sandbox", "", wrong))
	}
	findings = append(findings, judge("configuration",
		cmp.Or(e.Config.Path, "none; acp-agent setup writes "+
			cmp.Or(config.DefaultPath(), "that of --config FILE")), e.Invalid))
	if e.Invalid != nil {
		return findings
	}
	e.Begins("the stored sessions")
	findings = append(findings, e.examineStore(ctx)...)
	findings = append(findings, e.Files...)
	if notify := e.Config.NotifyCommand(nil); notify != nil {
		findings = append(findings, judge("notify", notify.Path, notify.Find()))
	}
	findings = append(findings, e.examineWorkspaces(ctx)...)
	findings = append(findings, e.examineRegistry()...)
	names := slices.Clone(e.Agents)
	configured := slices.Sorted(maps.Keys(e.Config.Agents))
	if e.Config.Agent != "" {
		configured = append(configured, e.Config.Agent)
	}
	for _, name := range configured {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		e.Begins("agent " + name)
		findings = append(findings, e.examineAgent(ctx, name, nil)...)
	}
	if len(e.Command) > 0 {
		e.Begins("agent " + e.Command[0])
		findings = append(findings, e.examineAgent(ctx, "", e.Command)...)
	} else if len(names) == 0 {
		findings = append(findings, Finding{"agents", Works,
			"none configured: acp-agent setup chooses one, and acp-agent doctor NAME checks any"})
	}
	return append(findings, e.examineModels(ctx)...)
}

// A Finding is the result of one check.
type Finding struct {
	Subject string `json:"subject"`
	State   State  `json:"state"`
	// Text says what was found, and what to do if something is wrong.
	Text string `json:"text"`
}

// A State says whether what was checked works.
type State string

const (
	Works    State = "works"
	Doubtful State = "doubtful"
	Broken   State = "broken"
)

// Mark returns the sign that stands for the state.
func (f Finding) Mark() string {
	return map[State]string{Works: "✓", Doubtful: "!", Broken: "✗"}[f.State]
}

// judge returns the finding of a check: err, or text if err is nil.
func judge(subject, text string, err error) Finding {
	if err != nil {
		return Finding{subject, Broken, err.Error()}
	}
	return Finding{subject, Works, text}
}

// examineWorkspaces checks whether sessions with configured folders can be opened.
func (e *Examination) examineWorkspaces(ctx context.Context) (findings []Finding) {
	for i, w := range e.Config.Workspaces {
		if len(w.Directories) == 0 {
			continue
		}
		f := Finding{Subject: fmt.Sprintf("workspaces[%d]", i), State: Works}
		if opened, err := e.OpenRoots(ctx, w.Cwd); err != nil {
			f.State, f.Text = Broken, fmt.Sprintf("no session opens in %s: %v", w.Cwd, err)
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
			f.State = Doubtful // it may be a project that is gone
		}
		findings = append(findings, f)
	}
	return findings
}

// examineRegistry checks the copy of the registry, if there is one.
func (e *Examination) examineRegistry() []Finding {
	r, err := e.Registry()
	if err == nil && r.CopiedAt.IsZero() {
		return nil
	}
	return []Finding{judge("registry", fmt.Sprintf("%s, copied on %s from %s",
		text.Count(len(r.Agents), "agent", "agents"), r.CopiedAt.Format(time.DateOnly),
		r.CopiedFrom), err)}
}

// examineStore opens the session store, reads a session if there is one, and checks that the store
// is writable.
func (e *Examination) examineStore(ctx context.Context) []Finding {
	const subject = "sessions"
	store, name, err := e.OpenStore()
	if err != nil {
		return []Finding{judge(subject, "", err)}
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
	return []Finding{judge(subject, name, cmp.Or(err, store.Close()))}
}

// examineDatabase checks the database with the sessions.
func examineDatabase(ctx context.Context, store *postgres.Store, subject string) []Finding {
	h, err := store.Check(ctx)
	findings := []Finding{judge(subject, fmt.Sprintf("%s: PostgreSQL %s, schema version %d, answers in %v",
		store, h.Server, h.Schema, h.RoundTrip.Round(10*time.Microsecond)), err)}
	if err != nil {
		return findings
	}
	if h.ReadOnly {
		findings = append(findings, Finding{subject, Broken, "the database can only be read; " +
			"give the address of its primary, or of all servers with target_session_attrs=read-write"})
	}
	if !h.Protected {
		findings = append(findings, Finding{subject, Doubtful, "the connection may be unencrypted, or the " +
			"database another one than it says: add sslmode=verify-full to the address"})
	}
	if !h.RowSecurity {
		findings = append(findings, Finding{subject, Doubtful, fmt.Sprintf("row-level security does not "+
			"apply to the user %s: use one that is neither a superuser nor has BYPASSRLS", h.User)})
	}
	return findings
}

// examineModels asks the servers of all configured models which models they offer.
func (e *Examination) examineModels(ctx context.Context) []Finding {
	var findings []Finding
	for _, id := range e.Config.ModelIDs() {
		e.Begins("model " + id)
		reports, err := inventory.Models(ctx, e.Config, []string{id})
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
func findingOf(r inventory.Model) Finding {
	f := Finding{"model " + r.ID, Works, fmt.Sprintf("%s at %s", r.Name, r.BaseURL)}
	switch {
	case r.Error != "":
		f.State, f.Text = Broken, fmt.Sprintf("%s cannot be asked: %s", r.BaseURL, r.Error)
	case r.Unlisted:
		f.State = Doubtful
		f.Text = fmt.Sprintf("%s does not list its models, so %q could not be checked; to try it: "+
			"acp-agent run --model %s hello", r.BaseURL, r.Name, r.ID)
	case !r.Offered():
		f.State = Broken
		f.Text = fmt.Sprintf("%s does not offer %q; acp-agent models %s shows what it offers",
			r.BaseURL, r.Name, r.ID)
	}
	return f
}
