package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// newSessions returns the commands for stored sessions.
func newSessions(s streams, set *settings) *cobra.Command {
	cmd := commandGroup(&cobra.Command{
		Use:   "sessions",
		Short: "List, search, continue, export, move and delete stored sessions",
	}, newSessionsList(s, set), newSessionsSearch(s, set), newSessionsShow(s, set),
		newSessionsCost(s, set),
		newSessionsExport(s, set),
		newSessionsImport(s, set), newSessionsCopy(s, set), newSessionsRename(s, set),
		newSessionsArchive(s, set), newSessionsUnarchive(s, set), newSessionsMove(s, set),
		newSessionsTransfer(s, set), newSessionsDelete(s, set), newSessionsPrune(s, set),
		newSessionsRepair(s, set))
	set.accept(cmd, "state-dir", "store")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return set.withStore(s.err, func(store sessionstore.Store) error {
			c, ok := terminal.OpenScreen(s.in, s.out)
			if !ok {
				q := sessionstore.Query{Archive: sessionstore.WithoutArchived}
				return listFlags{}.list(cmd.Context(), s, store, q)
			}
			return pickSession(cmd.Context(), c, s, set, store)
		})
	}
	return cmd
}

// acceptStore lets a command name a store, and the user whose sessions it is about.
func (set *settings) acceptStore(cmd *cobra.Command) {
	set.accept(cmd, "state-dir", "store")
	cmd.Flags().StringVar(&set.user, "user", "",
		"the sessions of `NAME`, a user of acp-agent serve, instead of your own")
}

func newSessionsDelete(s streams, set *settings) *cobra.Command {
	return changeCommand(s, set, &cobra.Command{
		Use:   "delete SESSION...",
		Short: "Delete sessions permanently",
	}, "deleted", sessionstore.Store.Delete)
}

// tell prints what was done to a session.
func tell(s streams, done string, session sessionstore.Session) error {
	line := fmt.Sprintf("%s %s %s", done, session.ID, text.Line(text.Plain(session.Title), 80))
	_, err := fmt.Fprintln(s.out, strings.TrimSpace(line))
	return err
}

func newSessionsRename(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rename SESSION TITLE",
		Short: "Give a session a title",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 || strings.TrimSpace(strings.Join(args[1:], "")) == "" {
				return usage.Errorf(
					"%s needs a SESSION and its TITLE; acp-agent sessions list shows them",
					words(cmd))
			}
			return nil
		},
		ValidArgsFunction: set.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			title := strings.Join(args[1:], " ")
			return set.withSessions(cmd, s, args[:1], func(
				store sessionstore.Store, one sessionstore.Session,
			) error {
				one.Title = title
				if err := store.Rename(cmd.Context(), one.ID, title); err != nil {
					return err
				}
				return tell(s, "renamed", one)
			})
		},
	}
	set.acceptStore(cmd)
	return cmd
}

func newSessionsArchive(s streams, set *settings) *cobra.Command {
	return changeCommand(s, set, &cobra.Command{
		Use:   "archive SESSION...",
		Short: "Leave sessions out of lists, without deleting them",
	}, "archived", sessionstore.Store.Archive)
}

func newSessionsUnarchive(s streams, set *settings) *cobra.Command {
	return changeCommand(s, set, &cobra.Command{
		Use:   "unarchive SESSION...",
		Short: "Show archived sessions in lists again",
	}, "unarchived", sessionstore.Store.Unarchive)
}

// change changes a session.
type change func(sessionstore.Store, context.Context, sessionstore.ID) error

// changeCommand makes cmd apply change to the sessions that it is given, and print what was done.
func changeCommand(
	s streams, set *settings, cmd *cobra.Command, done string, change change,
) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = sessionArgs(math.MaxInt), set.completeSessions
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return set.withSessions(cmd, s, names, func(
			store sessionstore.Store, one sessionstore.Session,
		) error {
			if err := change(store, cmd.Context(), one.ID); err != nil {
				return err
			}
			return tell(s, done, one)
		})
	}
	set.acceptStore(cmd)
	return cmd
}

func newSessionsShow(s streams, set *settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "show SESSION",
		Short:             "Show a session's folders and conversation",
		Args:              sessionArgs(1),
		ValidArgsFunction: set.completeSession,
		RunE: func(cmd *cobra.Command, names []string) error {
			return set.withSessions(cmd, s, names, func(
				store sessionstore.Store, one sessionstore.Session,
			) error {
				if asJSON {
					return sessions.WriteJSON(cmd.Context(), s.out, store, one)
				}
				return showSession(cmd.Context(), s.out, store, one)
			})
		},
	}
	set.acceptStore(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false,
		"print the session and each update, one JSON object per line")
	return cmd
}

// showSession prints a session's folders and conversation.
func showSession(
	ctx context.Context, out io.Writer, store sessionstore.Histories, stored sessionstore.Session,
) error {
	r := sessions.NewReport(stored)
	fmt.Fprintf(out, "session  %s\nagent    %s\ncreated  %s\nupdated  %s\n", r.ID,
		text.Printable(r.Agent),
		r.CreatedAt.Format(time.RFC3339), r.UpdatedAt.Format(time.RFC3339))
	if r.Title != "" {
		fmt.Fprintf(out, "title    %s\n", text.Line(text.Plain(r.Title), 80))
	}
	for i, d := range stored.Keys.Roots.All() {
		fmt.Fprintf(out, "folder %d %s\n", i, text.Printable(d.String()))
	}
	if r.Directories != "" {
		fmt.Fprintf(out, "given    %s\n", r.Directories)
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	show := terminal.NewPrinter(out)
	for u, err := range store.History(ctx, stored.ID) {
		if err != nil {
			return err
		}
		if u.Kind == sessionstore.TurnEndUpdate {
			if u, _ = u.EndNote(); u.Raw == nil {
				continue
			}
		}
		show.Update(ctx, client.Update{Kind: string(u.Kind), Update: strictjson.Find(u.Raw, "update")})
		if err := show.Err(); err != nil {
			return err
		}
	}
	show.End()
	return show.Err()
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
		Args:  noArgs,
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
	set.acceptStore(cmd)
	cmd.Flags().Var(&p.olderThan, "older-than",
		"only sessions without a turn for `AGE`, such as 30d or 12h")
	cmd.Flags().BoolVar(&p.all, "all", false, "also sessions that were used")
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false,
		"only print how many sessions would be deleted")
	return cmd
}

func (p pruneFlags) query(now time.Time) sessionstore.PruneQuery {
	q := sessionstore.PruneQuery{UnusedBefore: now.Add(-time.Duration(p.olderThan)),
		DryRun: p.dryRun}
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

const day = 24 * time.Hour

// age is a pflag.Value for a duration that can be given in days.
type age time.Duration

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

func newSessionsRepair(s streams, set *settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Repair a damaged session store",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if set.store != "" {
				return usage.Errorf("only a store in a file can be repaired, not a database; " +
					"restore that from a backup")
			}
			o, err := set.storeOptions(set.commandLog(s.err))
			if err != nil {
				return err
			}
			var r repairReport
			r.Damaged, err = sqlite.Repair(cmd.Context(), o,
				func(damaged, fresh *sqlite.Store) error {
					r.Readable, err = sessions.CopyReadable(cmd.Context(), damaged, fresh)
					return err
				})
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(s.out, r)
			}
			return r.show(s.out)
		},
	}
	set.accept(cmd, "state-dir", "store")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// repairReport is the result of a repair.
type repairReport struct {
	Damaged string `json:"damagedFile"`
	sessions.Readable
}

func (r repairReport) show(out io.Writer) error {
	if r.Damaged == "" {
		return terminal.Say(out, "the session store is not damaged; nothing was changed")
	}
	fmt.Fprintln(out, "kept", text.Count(r.Copied, "session", "sessions"))
	for _, id := range r.Lost {
		fmt.Fprintln(out, "lost", id)
	}
	return terminal.Say(out, "the damaged file is %s; remove it when you do not need it", r.Damaged)
}
