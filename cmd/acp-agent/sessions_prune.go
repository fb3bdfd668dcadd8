package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// pruneFlags say what goes.
type pruneFlags struct {
	olderThan age
	all       bool
	dryRun    bool
}

func newSessionsPrune(s streams, f *serveFlags) *cobra.Command {
	p := pruneFlags{olderThan: age(sessionstore.Retention)}
	cmd := &cobra.Command{
		Use:   "prune [--older-than AGE] [--all] [--dry-run]",
		Short: "Remove old sessions that were never used",
		Long: "prune removes sessions in which nothing was ever said and that are older than 30 days, or another age. With --all it " +
			"removes the others of that age too. The age counts from a session's last turn; one that is open in an editor ends there with an error.",
		Example: "  acp-agent sessions prune\n  acp-agent sessions prune --all --older-than 365d --dry-run",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withStore(func(store sessionstore.Store) error {
				n, err := store.Prune(cmd.Context(), p.query(time.Now()))
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(s.out, p.verb(), countOf(n, "session"))
				return err
			})
		},
	}
	cmd.Flags().Var(&p.olderThan, "older-than", "only sessions without a turn for `AGE`: 30d, 12h")
	cmd.Flags().BoolVar(&p.all, "all", false, "also sessions that were used")
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "only say how many there are")
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

// countOf is n things in words.
func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// age is a duration that can be given in days.
type age time.Duration

const day = 24 * time.Hour

// String implements pflag.Value.
func (a *age) String() string {
	if d := time.Duration(*a); d%day != 0 {
		return d.String()
	}
	return strconv.FormatInt(int64(time.Duration(*a)/day), 10) + "d"
}

// Type implements pflag.Value.
func (a *age) Type() string { return "age" }

// Set implements pflag.Value.
func (a *age) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || n > math.MaxInt64/uint64(day) {
			return fmt.Errorf("%q is no number of days", text)
		}
		*a = age(time.Duration(n) * day)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("give days as 30d, or hours as 12h")
	}
	*a = age(d)
	return nil
}
