package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func newSessionsCost(set *settings) *cobra.Command {
	return set.newCommand("cost", noArgs, needsStore, flags{"user": &set.user, "json": &set.json},
		func(cmd *cobra.Command, _ []string) error {
			return set.withStore(func(store sessionstore.Store) error {
				costs, err := sessions.ReadCosts(cmd.Context(), store)
				if err != nil {
					return err
				}
				return set.print(costs, func() error { return printCosts(set.out, costs) })
			})
		})
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
		money := sum(strings.Join(text.Amounts(line.Cost), ", "), line.CostIncomplete)
		table.Row(cmp.Or(text.Printable(line.Name), "total"), money, line.Turns,
			tokens(line, sessionstore.InputMeter), tokens(line, sessionstore.OutputMeter),
			tokens(line, cached...))
	}
	err := table.Print()
	_ = terminal.Say(out, "\nAs reported by the agents. With a subscription "+
		"it is an estimate, not a bill.")
	for _, note := range c.Notes {
		_ = terminal.Item(out, "* ", note+".")
	}
	return err
}

// tokens returns the sum of some meters of a line.
func tokens(l sessions.CostLine, meters ...sessionstore.Meter) string {
	all, said := 0.0, ""
	for _, m := range meters {
		if n, known := l.Tokens[m]; known {
			all += n
			said = strconv.FormatFloat(all, 'f', 0, 64)
		}
	}
	return sum(said, l.TokensIncomplete)
}

// sum returns what a table shows of a sum, "" if nothing is known.
func sum(said string, incomplete bool) string {
	if said != "" && incomplete {
		said += "*"
	}
	return cmp.Or(said, "-")
}
