package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

func newSessions(set *settings) *cobra.Command {
	cmd := commandGroup("sessions", newSessionsList(set), newSessionsSearch(set),
		newSessionsShow(set), newSessionsCost(set), newSessionsExport(set), newSessionsImport(set),
		newSessionsCopy(set), newSessionsMove(set), newSessionsRename(set), newSessionsFork(set),
		newSessionsTransfer(set), newSessionsPrune(set), newSessionsRepair(set),
		changeCommand(set, "archive", sessionstore.Sessions.Archive),
		changeCommand(set, "unarchive", sessionstore.Sessions.Unarchive),
		changeCommand(set, "delete", set.deleteSession))
	set.accept(cmd, needsStore, nil)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return set.withStore(func(store sessionstore.Store) error {
			screen, ok := terminal.OpenScreen(set.in, set.out)
			if !ok {
				q := sessionstore.Query{Archive: sessionstore.WithoutArchived}
				return listSessions(cmd.Context(), set, store, q, 0)
			}
			return terminal.Pick(cmd.Context(), screen, pickedSessions{set, store, screen})
		})
	}
	return cmd
}

// named is a session that a command line names, and the arguments after the sessions.
type named struct {
	sessionstore.Session
	store sessionstore.Store
	rest  []string
}

// sessionCommand returns a command that calls do with each session of its first most arguments.
func sessionCommand(
	set *settings, name string, own flags, most int, do func(context.Context, named) error,
) *cobra.Command {
	cmd := set.newCommand(name, takesSessions(most), needsStore, own,
		func(cmd *cobra.Command, args []string) error {
			names, rest := args[:min(most, len(args))], args[min(most, len(args)):]
			return set.withStore(func(store sessionstore.Store) error {
				var found []sessionstore.Session
				for _, name := range names { // all of them, before anything is done
					one, err := findSession(cmd.Context(), store, name)
					if err != nil {
						return err
					}
					found = append(found, one)
				}
				for _, one := range found {
					if err := do(cmd.Context(), named{one, store, rest}); err != nil {
						return err
					}
				}
				return nil
			})
		})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) (
		[]string, cobra.ShellCompDirective,
	) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return set.completeSessions(cmd, args, prefix)
	}
	return cmd
}

// takesSessions accepts between one and most sessions.
func takesSessions(most int) cobra.PositionalArgs {
	return takes(1, most, "one SESSION", "; acp-agent sessions list shows them")
}

// changeCommand returns the command that applies change to the sessions that it is given.
func changeCommand(
	set *settings, name string,
	change func(sessionstore.Sessions, context.Context, sessionstore.ID) error,
) *cobra.Command {
	return sessionCommand(set, name, flags{"user": &set.user}, math.MaxInt,
		func(ctx context.Context, one named) error {
			if err := change(one.store, ctx, one.ID); err != nil {
				return err
			}
			return tellDone(set.out, strings.TrimSuffix(name, "e")+"ed", one.Session)
		})
}

func tellDone(out io.Writer, done string, session sessionstore.Session) error {
	line := fmt.Sprintf("%s %s %s", done, session.ID, text.Line(text.Plain(session.Title), 80))
	_, err := fmt.Fprintln(out, strings.TrimSpace(line))
	return err
}

func newSessionsRename(set *settings) *cobra.Command {
	cmd := sessionCommand(set, "rename", flags{"user": &set.user}, 1,
		func(ctx context.Context, one named) error {
			one.Title = strings.Join(one.rest, " ")
			if err := one.store.Rename(ctx, one.ID, one.Title); err != nil {
				return err
			}
			return tellDone(set.out, "renamed", one.Session)
		})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 || strings.TrimSpace(strings.Join(args[1:], "")) == "" {
			return usage.Errorf("%s needs a SESSION and its TITLE; acp-agent sessions list shows "+
				"them", words(cmd))
		}
		return nil
	}
	return cmd
}

func newSessionsFork(set *settings) *cobra.Command {
	var before int
	own := flags{"user": &set.user, "before": intValue{&before, 0}}
	cmd := sessionCommand(set, "fork", own, 1, func(ctx context.Context, one named) error {
		n := backend.NewCopy(one.Session, fmt.Sprintf("before turn %d", before))
		if err := sessionstore.ForkBefore(ctx, one.store, one.ID, int64(before), n); err != nil {
			return fmt.Errorf("%w; acp-agent sessions show %s numbers them", err, one.ID)
		}
		set.note("files were not changed back; to go on: acp-agent run --resume %s PROMPT", n.ID)
		_, err := fmt.Fprintln(set.out, n.ID)
		return err
	})
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("before") {
			return usage.Errorf("name a turn with --before; acp-agent sessions show numbers them")
		}
		return nil
	}
	return cmd
}

func newSessionsExport(set *settings) *cobra.Command {
	var name, output string
	var format sessions.Format
	own := flags{"user": &set.user, "format": &name, "output,o": &output}
	cmd := sessionCommand(set, "export", own, 1, func(ctx context.Context, one named) error {
		err := format.Export(ctx, set.out, one.store, one.Session, output)
		if err == nil && output != "" && output != "-" {
			set.note("wrote %s", text.Printable(output))
		}
		return err
	})
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		format, err = sessions.FormatOf(name, output)
		return err
	}
	return cmd
}

func newSessionsShow(set *settings) *cobra.Command {
	return sessionCommand(set, "show", flags{"user": &set.user, "json": &set.json}, 1,
		func(ctx context.Context, one named) error {
			if set.json {
				return sessions.WriteJSON(ctx, set.out, one.store, one.Session)
			}
			return showSession(ctx, set.out, one.store, one.Session)
		})
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
		fmt.Fprintf(out, "folder %d %s%s\n", i, text.Printable(d.String()),
			stored.Keys.Roots.Grant(d).Mark())
	}
	if r.Directories != "" {
		fmt.Fprintf(out, "given    %s\n", r.Directories)
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	show := terminal.NewPrinter(out)
	var turns sessionstore.TurnCounter
	for u, err := range store.History(ctx, stored.ID) {
		if err != nil {
			return err
		}
		if n, begins := turns.Next(u); begins {
			show.Note(fmt.Sprint("turn ", n))
		}
		if u.Kind == sessionstore.TurnEndUpdate {
			if u, _ = u.EndNote(); u.Raw == nil {
				continue
			}
		}
		show.Update(ctx, client.Update{Kind: string(u.Kind), Update: u.Body()})
		if err := show.Err(); err != nil {
			return err
		}
	}
	show.End()
	return show.Err()
}

func newSessionsPrune(set *settings) *cobra.Command {
	var q sessionstore.PruneQuery
	olderThan, all := age(sessionstore.Retention), false
	return set.newCommand("prune", noArgs, needsStore, flags{
		"user": &set.user, "older-than": &olderThan, "all": &all, "dry-run": &q.DryRun},
		func(cmd *cobra.Command, _ []string) error {
			q.UnusedBefore = time.Now().Add(-time.Duration(olderThan))
			if all {
				q.Before = q.UnusedBefore
			}
			done := "removed"
			if q.DryRun {
				done = "would remove"
			}
			return set.withStore(func(store sessionstore.Store) error {
				n, err := store.Prune(cmd.Context(), q)
				if err == nil && !q.DryRun && set.user == "" { // others of the store delete sessions too
					err = set.snapshots().Prune(func(session string) bool {
						_, err := store.Get(cmd.Context(), sessionstore.ID(session))
						return errors.As(err, new(*sessionstore.NotFoundError))
					})
				}
				if err == nil {
					_, err = fmt.Fprintln(set.out, done, text.Count(n, "session", "sessions"))
				}
				return err
			})
		})
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
		return errors.New("must be a number with its unit, such as 30d, 12h, 5m or 20s")
	}
	*a = age(d)
	return nil
}

func newSessionsRepair(set *settings) *cobra.Command {
	return set.newCommand("repair", noArgs, needsStore, flags{"json": &set.json},
		func(cmd *cobra.Command, _ []string) error {
			if set.store != "" {
				return usage.Errorf("only a store in a file can be repaired, not a database; " +
					"restore that from a backup")
			}
			var r repairReport
			var err error
			r.Damaged, err = sqlite.Repair(cmd.Context(),
				sqlite.Options{Dir: set.dir(), Logger: set.log}, func(damaged, fresh *sqlite.Store) error {
					r.Readable, err = sessions.CopyReadable(cmd.Context(), damaged, fresh)
					return err
				})
			if err != nil {
				return err
			}
			return set.print(r, func() error { return r.show(set.out) })
		})
}

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
