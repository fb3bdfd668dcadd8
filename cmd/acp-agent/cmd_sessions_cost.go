package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// costFlags are the flags of sessions cost.
type costFlags struct {
	since  since
	by     string
	folder string
	json   bool
}

func newSessionsCost(s streams, set *settings) *cobra.Command {
	f := costFlags{by: string(sessions.ByFolder)}
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what sessions have cost, as reported by their agents",
		Long: `cost sums up what agents reported: money, tokens and turns. With a subscription
an amount is the agent's estimate at list prices, not a bill. Amounts in
different currencies are not added. Sums with * are known to be incomplete, and
the lines below the table say why.

What a session uses is counted when a turn ends. It belongs to the session's
working directory, and to the day on which it was reported. It is deleted with
the session, and what agents use without acp-agent is not in it.`,
		Example: `  acp-agent sessions cost --since 7d
  acp-agent sessions cost --by day --since 2026-11-01 --folder ~/src/app`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := f.query(time.Now())
			if err != nil {
				return err
			}
			return set.withStore(s.err, func(store sessionstore.Store) error {
				costs, err := sessions.ReadCosts(cmd.Context(), store, q)
				if err != nil {
					return err
				}
				if f.json {
					return writeJSON(s.out, costs)
				}
				return printCosts(s.out, q.By, costs)
			})
		},
	}
	set.acceptStore(cmd)
	cmd.Flags().Var(&f.since, "since",
		"only what was used since `WHEN`: an age such as 7d or 12h, or a date such as 2026-11-01")
	cmd.Flags().StringVar(&f.by, "by", f.by,
		"a line for each `GROUP`: session, folder, agent or day")
	cmd.Flags().StringVar(&f.folder, "folder", "",
		"only sessions with a folder that is `DIR` or in it")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// query returns the query for the flags.
func (f costFlags) query(now time.Time) (sessions.CostQuery, error) {
	q := sessions.CostQuery{Since: f.since.before(now), By: sessions.Grouping(f.by), Zone: time.Local}
	if !slices.Contains(sessions.Groupings(), q.By) {
		return q, usage.Errorf("--by is session, folder, agent or day, not %s", text.Name(f.by))
	}
	if f.folder != "" {
		dirs, err := usage.Absolute(f.folder)
		if err != nil {
			return q, err
		}
		q.Folder = dirs.At(0)
	}
	return q, nil
}

// since is a pflag.Value for a time: an age, or a date in the local time zone.
type since struct {
	text string
	age  age
	date time.Time
}

func (s *since) String() string { return s.text }

func (s *since) Type() string { return "when" }

func (s *since) Set(text string) error {
	if date, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		*s = since{text: text, date: date}
		return nil
	}
	*s = since{text: text}
	if s.age.Set(text) != nil {
		return fmt.Errorf("must be an age such as 7d or 12h, or a date such as 2026-11-01")
	}
	return nil
}

// before returns the time, which is the zero time if none was given.
func (s *since) before(now time.Time) time.Time {
	if s.text == "" || !s.date.IsZero() {
		return s.date
	}
	return now.Add(-time.Duration(s.age))
}

// printCosts prints a table with a line for each group, the total, and what is missing.
func printCosts(out io.Writer, by sessions.Grouping, c sessions.Costs) error {
	if len(c.Lines) == 0 {
		_, err := fmt.Fprintln(out, "no agent has reported anything")
		return err
	}
	table := terminal.NewTable(out, strings.ToUpper(string(by)), "COST", "TURNS", "TOKENS IN",
		"OUT", "CACHED")
	for _, line := range append(c.Lines, c.Total) {
		name := text.Printable(line.Name)
		if line.Title != "" {
			name += " " + text.Line(line.Title, 40)
		}
		cached := []sessionstore.Meter{sessionstore.CachedReadMeter, sessionstore.CachedWriteMeter}
		table.Row(cmp.Or(name, "total"), money(line), line.Turns,
			tokens(line, sessionstore.InputMeter), tokens(line, sessionstore.OutputMeter),
			tokens(line, cached...))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nAs reported by the agents. With a subscription it is an estimate, not a bill.")
	for _, note := range c.Notes {
		fmt.Fprintln(out, "*", note+".")
	}
	return nil
}

// money returns the amounts of a line, by currency.
func money(l sessions.CostLine) string {
	var all []string
	for _, unit := range slices.Sorted(maps.Keys(l.Cost)) {
		all = append(all, text.Money(l.Cost[unit], unit))
	}
	return marked(strings.Join(all, ", "), l.CostIncomplete)
}

// tokens returns the sum of some meters of a line.
func tokens(l sessions.CostLine, meters ...sessionstore.Meter) string {
	sum, known := 0.0, false
	for _, m := range meters {
		n, ok := l.Tokens[m]
		sum, known = sum+n, known || ok
	}
	said := ""
	if known {
		said = strconv.FormatFloat(sum, 'f', 0, 64)
	}
	return marked(said, l.TokensIncomplete)
}

// marked returns what a table shows of a sum, "" if nothing is known.
func marked(sum string, incomplete bool) string {
	switch {
	case sum == "":
		return "-"
	case incomplete:
		return sum + "*"
	}
	return sum
}
