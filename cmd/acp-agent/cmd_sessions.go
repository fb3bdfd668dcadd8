package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// newSessions returns the commands for stored sessions.
func newSessions(s streams, set *settings) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "sessions",
		Short: "List, show, move, transfer, delete, prune and repair stored sessions",
	}, newSessionsList(s, set), newSessionsShow(s, set), newSessionsMove(s, set), newSessionsTransfer(s, set),
		newSessionsDelete(s, set), newSessionsPrune(s, set), newSessionsRepair(s, set))
}

// sessionReport describes a session.
type sessionReport struct {
	ID                    sessionstore.ID `json:"sessionId"`
	Agent                 string          `json:"agent"`
	Cwd                   workspace.Dir   `json:"cwd"`
	AdditionalDirectories workspace.Dirs  `json:"additionalDirectories"`
	Title                 string          `json:"title,omitempty"`
	CreatedAt             time.Time       `json:"createdAt"`
	UpdatedAt             time.Time       `json:"updatedAt"`
	Turns                 int64           `json:"turns"`
	// Directories describes how the agent behind acp-agent learns about the folders.
	Directories string `json:"directories,omitempty"`
}

func report(s sessionstore.Session) sessionReport {
	agent := s.Agent.Kind
	if s.Agent.Profile != "" {
		agent += " " + s.Agent.Profile
	}
	directories := ""
	if s.Agent.Kind == proxy.Kind {
		directories = proxy.Describe(s.State)
	}
	return sessionReport{
		Directories: directories,
		ID:          s.ID, Agent: agent, Cwd: s.Keys.Roots.Cwd(), AdditionalDirectories: s.Keys.Roots.Additional(),
		Title: s.Title, CreatedAt: s.Created.UTC(), UpdatedAt: s.Updated.UTC(), Turns: s.Turns,
	}
}

// listFlags are the flags of sessions list.
type listFlags struct {
	cwd  string
	dirs []string
	none bool
	json bool
}

func newSessionsList(s streams, set *settings) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use:     "list [--cwd DIR] [--dir DIR]... [--no-dirs]",
		Short:   "List stored sessions, newest activity first",
		Long:    "list shows the sessions of all agents. --dir selects sessions whose additional folders are exactly these, in this order.",
		Example: "  acp-agent sessions list --cwd app --dir shared --dir skills",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := exclusive(cmd, "dir", "no-dirs"); err != nil {
				return err
			}
			q, err := l.query()
			if err != nil {
				return err
			}
			return set.withStore(s.err, func(store sessionstore.Store) error { return listSessions(cmd.Context(), s, store, q, l) })
		},
	}
	set.accept(cmd, "state-dir")
	cmd.Flags().StringVar(&l.cwd, "cwd", "", "only sessions with this working directory `DIR`")
	cmd.Flags().Var((*listValue)(&l.dirs), "dir", "only sessions with the additional folder `DIR`; repeat it for the complete list")
	cmd.Flags().BoolVar(&l.none, "no-dirs", false, "only sessions without additional folders")
	cmd.Flags().BoolVar(&l.json, "json", false, "print one JSON object per line")
	return cmd
}

// query returns the query for the flags.
func (l listFlags) query() (sessionstore.Query, error) {
	q := sessionstore.Query{Limit: sessionstore.MaxPageSize}
	if l.cwd != "" {
		dirs, err := absolute(l.cwd)
		if err != nil {
			return q, err
		}
		q.Cwd = sessionstore.FilterDir(dirs.At(0))
	}
	if len(l.dirs) == 0 && !l.none {
		return q, nil
	}
	dirs, err := absolute(l.dirs...)
	if err != nil {
		return q, err
	}
	if q.Cwd != nil {
		dirs = dirs.Without(q.Cwd.Spelling)
	}
	q.Additional = sessionstore.FilterDirs(dirs)
	return q, nil
}

func listSessions(ctx context.Context, s streams, store sessionstore.Sessions, q sessionstore.Query, l listFlags) error {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	if !l.json {
		fmt.Fprintln(table, "SESSION\tUPDATED (UTC)\tAGENT\tFOLDERS\tTITLE")
	}
	for none := true; ; none = false {
		page, err := store.List(ctx, q)
		if err != nil {
			return err
		}
		for _, stored := range page.Sessions {
			r := report(stored)
			if l.json {
				err = writeJSON(s.out, r)
			} else {
				_, err = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.UpdatedAt.Format(time.DateTime), text.Printable(r.Agent), folders(stored.Keys.Roots), text.Line(text.Plain(r.Title), 80))
			}
			if err != nil {
				return err
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			if none && len(page.Sessions) == 0 {
				fmt.Fprintln(s.err, "acp-agent: no such sessions")
			}
			return table.Flush()
		}
	}
}

// folders returns a session's roots on one line, quoting names with spaces.
func folders(roots workspace.Roots) string {
	var names []string
	for _, d := range roots.All() {
		name := text.Printable(d.String())
		if strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
			name = strconv.Quote(name)
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func newSessionsDelete(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete SESSION...",
		Short: "Delete sessions permanently",
		Long:  "delete removes sessions and their conversations. Their text is erased from the file.\nIf a session is open in an editor, it ends there with an error.",
		Args:  sessionArgs(math.MaxInt),

		ValidArgsFunction: set.completeSessions,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return set.withStore(s.err, func(store sessionstore.Store) error {
				for _, id := range ids {
					if _, err := store.Get(cmd.Context(), sessionstore.ID(id)); err != nil {
						return err
					}
					if err := store.Delete(cmd.Context(), sessionstore.ID(id)); err != nil {
						return err
					}
					fmt.Fprintln(s.out, "deleted", id)
				}
				return nil
			})
		},
	}
	set.accept(cmd, "state-dir")
	return cmd
}

// showFlags are the flags of sessions show.
type showFlags struct{ json bool }

func newSessionsShow(s streams, set *settings) *cobra.Command {
	var show showFlags
	cmd := &cobra.Command{
		Use:               "show SESSION",
		Short:             "Show a session's folders and conversation",
		Args:              sessionArgs(1),
		ValidArgsFunction: set.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return set.withStore(s.err, func(store sessionstore.Store) error {
				return show.session(cmd.Context(), s, store, sessionstore.ID(args[0]))
			})
		},
	}
	set.accept(cmd, "state-dir")
	cmd.Flags().BoolVar(&show.json, "json", false, "print the session and each update, one JSON object per line")
	return cmd
}

// session prints a session and its conversation.
func (f showFlags) session(ctx context.Context, s streams, store sessionstore.Store, id sessionstore.ID) error {
	stored, err := store.Get(ctx, id)
	if err != nil {
		return err
	}
	show := &transcript{out: s, json: f.json, printer: newPrinter(s.out)}
	if err := show.session(report(stored)); err != nil {
		return err
	}
	for u, err := range store.History(ctx, id) {
		if err != nil {
			return err
		}
		if err := show.update(ctx, u); err != nil {
			return err
		}
	}
	return show.end()
}

// transcript prints a stored session.
type transcript struct {
	out     streams
	json    bool
	printer *printer
}

func (t *transcript) session(r sessionReport) error {
	if t.json {
		return writeJSON(t.out.out, r)
	}
	fmt.Fprintf(t.out.out, "session  %s\nagent    %s\ncreated  %s\nupdated  %s\n", r.ID, text.Printable(r.Agent),
		r.CreatedAt.Format(time.RFC3339), r.UpdatedAt.Format(time.RFC3339))
	if r.Title != "" {
		fmt.Fprintf(t.out.out, "title    %s\n", text.Line(text.Plain(r.Title), 80))
	}
	fmt.Fprintf(t.out.out, "root 0   %s\n", text.Printable(r.Cwd.String()))
	for i, d := range r.AdditionalDirectories.All() {
		fmt.Fprintf(t.out.out, "root %d   %s\n", i+1, text.Printable(d.String()))
	}
	if r.Directories != "" {
		fmt.Fprintf(t.out.out, "given    %s\n", r.Directories)
	}
	_, err := fmt.Fprintln(t.out.out)
	return err
}

func (t *transcript) update(ctx context.Context, u sessionstore.Update) error {
	if t.json {
		_, err := fmt.Fprintf(t.out.out, "%s\n", text.EscapeJSON(u.Raw))
		return err
	}
	var params struct{ Update json.RawMessage }
	if json.Unmarshal(u.Raw, &params) != nil {
		return nil
	}
	t.printer.update(ctx, client.Update{Kind: string(u.Kind), Update: params.Update})
	return t.printer.err()
}

func (t *transcript) end() error {
	if !t.json {
		t.printer.end()
	}
	return t.printer.err()
}

// pruneFlags are the flags of sessions prune.
type pruneFlags struct {
	olderThan age
	all       bool
	dryRun    bool
}

func newSessionsPrune(s streams, set *settings) *cobra.Command {
	p := pruneFlags{olderThan: age(sessionstore.Retention)}
	cmd := &cobra.Command{
		Use:   "prune [--older-than AGE] [--all] [--dry-run]",
		Short: "Delete old sessions that were never used",
		Long: `prune deletes sessions that were never prompted and are older than 30 days, or another age. With --all it deletes other
sessions of that age, too. The age of a session counts from its last turn. If a deleted session is open in an editor, it
ends there with an error.`,
		Example: "  acp-agent sessions prune\n  acp-agent sessions prune --all --older-than 365d --dry-run",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return set.withStore(s.err, func(store sessionstore.Store) error {
				n, err := store.Prune(cmd.Context(), p.query(time.Now()))
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(s.out, p.verb(), text.Count(n, "session", "sessions"))
				return err
			})
		},
	}
	set.accept(cmd, "state-dir")
	cmd.Flags().Var(&p.olderThan, "older-than", "only sessions without a turn for `AGE`, such as 30d or 12h")
	cmd.Flags().BoolVar(&p.all, "all", false, "also sessions that were used")
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "only print how many sessions would be deleted")
	return cmd
}

func (p pruneFlags) query(now time.Time) sessionstore.PruneQuery {
	q := sessionstore.PruneQuery{UnusedBefore: now.Add(-time.Duration(p.olderThan)), DryRun: p.dryRun}
	if p.all {
		q.Before = q.UnusedBefore
	}
	return q
}

func (p pruneFlags) verb() string {
	if p.dryRun {
		return "would remove"
	}
	return "removed"
}

// age is a pflag.Value for a duration that can be given in days.
type age time.Duration

const day = 24 * time.Hour

func (a *age) String() string {
	if d := time.Duration(*a); d%day != 0 {
		return d.String()
	}
	return strconv.FormatInt(int64(time.Duration(*a)/day), 10) + "d"
}

func (a *age) Type() string { return "age" }

func (a *age) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > math.MaxInt64/uint64(day) {
			return fmt.Errorf("invalid number of days %q", text)
		}
		*a = age(time.Duration(n) * day)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("must be a number of days such as 30d, or hours such as 12h")
	}
	*a = age(d)
	return nil
}

// repairReport describes the result of a repair.
type repairReport struct {
	Damaged    string            `json:"damagedFile"`
	Sessions   int               `json:"sessions"`
	Updates    int               `json:"updates"`
	Incomplete []sessionstore.ID `json:"incomplete,omitempty"`
	Lost       []sessionstore.ID `json:"lost,omitempty"`
}

// repairFlags are the flags of sessions repair.
type repairFlags struct{ json bool }

func newSessionsRepair(s streams, set *settings) *cobra.Command {
	var r repairFlags
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Repair a damaged session store",
		Long: `repair copies everything readable from a damaged session store into a new one, and keeps the damaged file. Close your
editors first. If the store is not damaged, repair changes nothing, and "damagedFile" is empty with --json.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := set.repairStore(cmd.Context(), s.err)
			if err != nil {
				return err
			}
			return r.show(s, repairReport(done))
		},
	}
	set.accept(cmd, "state-dir")
	cmd.Flags().BoolVar(&r.json, "json", false, "print one JSON object")
	return cmd
}

func (r repairFlags) show(s streams, done repairReport) error {
	if r.json {
		return writeJSON(s.out, done)
	}
	if done.Damaged == "" {
		_, err := fmt.Fprintln(s.out, "the session store is not damaged; nothing was changed")
		return err
	}
	fmt.Fprintf(s.out, "kept %s with %s\n", text.Count(done.Sessions, "session", "sessions"), text.Count(done.Updates, "update", "updates"))
	for _, id := range done.Incomplete {
		fmt.Fprintln(s.out, "lost a part of", id)
	}
	for _, id := range done.Lost {
		fmt.Fprintln(s.out, "lost", id)
	}
	_, err := fmt.Fprintf(s.out, "the damaged file is %s; remove it when you do not need it\n", done.Damaged)
	return err
}
