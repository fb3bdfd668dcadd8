package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

func newSessionsCopy(set *settings) *cobra.Command {
	var from, to string
	return set.newCommand("copy", noArgs, needsStore, flags{"from": &from, "to": &to},
		func(cmd *cobra.Command, _ []string) error {
			if from == to {
				return usage.Errorf("%s needs --from or --to, and two different stores, such as: "+
					"acp-agent sessions copy --to ~/backup", words(cmd))
			}
			return copySessions(cmd.Context(), set, from, to)
		})
}

func copySessions(ctx context.Context, set *settings, source, target string) error {
	from, name, err := set.namedStore(source)
	if err == nil && !isPostgres(name) && !sqlite.Exists(name) {
		err = fmt.Errorf("there is no session store in %s: give a folder that --state-dir can "+
			"name, such as ~/backup", text.Printable(name))
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, other, err := set.namedStore(target)
	if err != nil {
		return err
	}
	if name == other || namedfile.Same(name, other) {
		return errors.Join(usage.Errorf("both stores are %s", name), to.Close())
	}
	progress := terminal.NewProgress(set.err)
	shown := time.Now()
	counts, err := sessions.Copy(ctx, from, to, func(c sessions.Counts) {
		if time.Since(shown) > 200*time.Millisecond {
			shown = time.Now()
			progress.Show("%d of %d sessions", c.Copied+c.Present, c.Total)
		}
	})
	err = errors.Join(err, to.Close())
	progress.End()
	if err != nil {
		return err
	}
	return terminal.Say(set.out, "copied %s", counts)
}
