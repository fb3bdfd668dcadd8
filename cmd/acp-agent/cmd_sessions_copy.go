package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/namedfile"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// copyFlags are the flags of sessions copy.
type copyFlags struct{ from, to string }

func newSessionsCopy(s streams, set *settings) *cobra.Command {
	var f copyFlags
	cmd := &cobra.Command{
		Use:   "copy [--from STORE] [--to STORE]",
		Short: "Copy all sessions to another store",
		Long: `copy copies the sessions of all users to another store. STORE is a directory, as of
--state-dir, or the address of a PostgreSQL database, as of --store. If one is left out, it is the
store that acp-agent uses otherwise: put an address with a password into ACP_AGENT_STORE.

A session that the other store has, used as late or later, stays as it is there. So when copy was
interrupted, run it again. End the editors and servers that use the stores first: of a session in
which a turn is running, only what was stored of it is copied.

Sessions that an agent still lists and you have deleted stay deleted in the other store. copy
deletes no session there that was ever used, and copies again what you have deleted only there.`,
		Example: `  acp-agent sessions copy --to postgres://acp@db.example.org/acp
  ACP_AGENT_STORE=postgres://acp:…@db.example.org/acp acp-agent sessions copy --to ~/backup`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.from == f.to {
				return usagef("%s needs --from or --to, and two different stores", words(cmd))
			}
			return f.copy(cmd.Context(), s, set)
		},
	}
	set.accept(cmd, "state-dir", "store")
	cmd.Flags().StringVar(&f.from, "from", "", "copy the sessions in `STORE`")
	cmd.Flags().StringVar(&f.to, "to", "", "copy them to `STORE`")
	return cmd
}

// copy copies all sessions.
func (f copyFlags) copy(ctx context.Context, s streams, set *settings) error {
	from, name, err := set.namedStore(f.from, s.err)
	if err == nil && !isPostgres(name) && !sqlite.Exists(name) {
		err = fmt.Errorf("there is no session store in %s", text.Printable(name))
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, other, err := set.namedStore(f.to, s.err)
	if err != nil {
		return err
	}
	if name == other || namedfile.Same(name, other) {
		return errors.Join(usagef("both stores are %s", name), to.Close())
	}
	c := copying{from: from, to: to, stderr: s.err}
	err = errors.Join(c.run(ctx), to.Close())
	c.report(true)
	if err != nil {
		return fmt.Errorf("%w; run the command again to copy the rest", err)
	}
	_, err = fmt.Fprintf(s.out, "copied %s\n", c.counts())
	return err
}

// copying is a run of sessions copy.
type copying struct {
	from, to sessionstore.Shared
	stderr   io.Writer

	total, copied, present int
	shown                  time.Time // when the progress was last shown
}

// counts describes what was done.
func (c *copying) counts() string {
	counts := text.Count(c.copied, "session", "sessions")
	if c.present > 0 {
		counts += "; " + text.Count(c.present, "was", "were") + " there already, used as late or later"
	}
	return counts
}

// report shows the progress on a terminal, a few times a second. The last report ends the line.
func (c *copying) report(last bool) {
	if !terminal.Is(c.stderr) || !last && time.Since(c.shown) < 200*time.Millisecond {
		return
	}
	c.shown = time.Now()
	fmt.Fprintf(c.stderr, "\r%d of %d sessions", c.copied+c.present, c.total)
	if last {
		fmt.Fprintln(c.stderr)
	}
}

// run copies the sessions of all owners.
func (c *copying) run(ctx context.Context) error {
	owners, err := c.from.Owners(ctx)
	if err != nil {
		return err
	}
	ids := make([][]sessionstore.ID, len(owners))
	for i, owner := range owners {
		for one, err := range listed(ctx, c.from.For(owner), sessionstore.Query{}) {
			if err != nil {
				return err
			}
			ids[i] = append(ids[i], one.ID)
			c.total++
		}
	}
	for i, owner := range owners {
		for _, id := range ids[i] {
			c.report(false)
			stored, err := copySession(ctx, c.from.For(owner), c.to.For(owner), id)
			switch {
			case errors.As(err, new(*sessionstore.NotFoundError)):
				c.total-- // it was deleted since
			case errors.As(err, new(*sessionstore.UnavailableError)):
				return err
			case err != nil:
				return fmt.Errorf("session %s: %w", id, err)
			case stored:
				c.copied++
			default:
				c.present++
			}
		}
		if err := copyDeleted(ctx, c.from.For(owner), c.to.For(owner)); err != nil {
			return err
		}
	}
	return nil
}

// copyDeleted makes a store remember the deleted sessions that another one does.
func copyDeleted(ctx context.Context, from, to sessionstore.Imports) error {
	deleted, err := from.Deleted(ctx)
	for agent, some := range deleted {
		if err == nil {
			err = to.RestoreDeleted(ctx, agent, some)
		}
	}
	return err
}

// copySession copies a session, unless to has it, used as late or later. If it fails, to has
// nothing of it.
func copySession(
	ctx context.Context, from, to sessionstore.Store, id sessionstore.ID,
) (stored bool, err error) {
	one, err := from.Get(ctx, id)
	if err != nil {
		return false, err
	}
	// Most are there if the command is repeated. Restore decides.
	if there, err := to.Get(ctx, id); err == nil && !there.Updated.Before(one.Updated) {
		return false, nil
	}
	history, err := to.NewDraft(ctx, "")
	if err != nil {
		return false, err
	}
	if err = copyHistory(ctx, from, id, history); err == nil {
		stored, err = to.Restore(ctx, one, history)
	}
	if !stored {
		err = errors.Join(err, history.Discard(context.WithoutCancel(ctx)))
	}
	return stored, err
}

// copyHistory copies the history of a session, and its states.
func copyHistory(
	ctx context.Context, from sessionstore.Histories, id sessionstore.ID, to sessionstore.Draft,
) error {
	const batchBytes = 1 << 20
	batch, err := from.States(ctx, id)
	size := 0
	for u, historyErr := range from.History(ctx, id) {
		if err = errors.Join(err, historyErr); err != nil {
			return err
		}
		batch = append(batch, u)
		if size += len(u.Raw); size >= batchBytes {
			if err := to.Append(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
	}
	if err != nil {
		return err
	}
	return to.Append(ctx, batch)
}
