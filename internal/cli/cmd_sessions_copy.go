package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/usage"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// copyFlags are the flags of sessions copy.
type copyFlags struct{ from, to string }

func newSessionsCopy(s streams, set *settings) *cobra.Command {
	var f copyFlags
	cmd := &cobra.Command{
		Use:   "copy [--from STORE] [--to STORE]",
		Short: "Copy all sessions to another store",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.from == f.to {
				return usage.Errorf("%s needs --from or --to, and two different stores, such as: "+
					"acp-agent sessions copy --to ~/backup", words(cmd))
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
		err = fmt.Errorf("there is no session store in %s: give a folder that --state-dir can "+
			"name, such as %s", text.Printable(name), defaultStateDirText())
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
		return errors.Join(usage.Errorf("both stores are %s", name), to.Close())
	}
	progress := &copyProgress{stderr: s.err}
	counts, err := sessions.Copy(ctx, from, to, progress.show)
	err = errors.Join(err, to.Close())
	progress.end(counts)
	if err != nil {
		return err
	}
	return terminal.Say(s.out, "copied %s", counts)
}

// copyProgress shows how many sessions were copied.
type copyProgress struct {
	stderr io.Writer
	shown  time.Time
}

// show shows the counts on a terminal, a few times a second.
func (p *copyProgress) show(c sessions.Counts) {
	if time.Since(p.shown) >= 200*time.Millisecond {
		p.write(c)
	}
}

// end shows the last counts, and ends the line.
func (p *copyProgress) end(c sessions.Counts) {
	p.write(c)
	if terminal.Is(p.stderr) {
		fmt.Fprintln(p.stderr)
	}
}

func (p *copyProgress) write(c sessions.Counts) {
	p.shown = time.Now()
	if terminal.Is(p.stderr) {
		fmt.Fprintf(p.stderr, "\r%d of %d sessions", c.Copied+c.Present, c.Total)
	}
}
