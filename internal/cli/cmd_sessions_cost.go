package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func newSessionsCost(s streams, set *settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what sessions have cost, as reported by their agents",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return set.withStore(s.err, func(store sessionstore.Store) error {
				costs, err := sessions.ReadCosts(cmd.Context(), store)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(s.out, costs)
				}
				return printCosts(s.out, costs)
			})
		},
	}
	set.acceptStore(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// printCosts prints a table with a line for each folder, the total, and what is missing.
func printCosts(out io.Writer, c sessions.Costs) error {
	if len(c.Lines) == 0 {
		_, err := fmt.Fprintln(out, "no agent has reported anything")
		return err
	}
	table := terminal.NewTable(out, "FOLDER", "COST", "TURNS", "TOKENS IN", "OUT", "CACHED")
	for _, line := range append(c.Lines, c.Total) {
		cached := []sessionstore.Meter{sessionstore.CachedReadMeter, sessionstore.CachedWriteMeter}
		table.Row(cmp.Or(text.Printable(line.Name), "total"), money(line), line.Turns,
			tokens(line, sessionstore.InputMeter), tokens(line, sessionstore.OutputMeter),
			tokens(line, cached...))
	}
	if err := table.Print(); err != nil {
		return err
	}
	_ = terminal.Say(out, "\nAs reported by the agents. With a subscription "+
		"it is an estimate, not a bill.")
	for _, note := range c.Notes {
		_ = terminal.Item(out, "* ", note+".")
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
