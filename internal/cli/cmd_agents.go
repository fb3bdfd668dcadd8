package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
)

func newAgents(set *settings) *cobra.Command {
	return set.newCommand("agents", noArgs, needsConfig, flags{"json": &set.json, "state-dir": nil},
		func(*cobra.Command, []string) error {
			list, err := set.profiles()
			if err != nil {
				set.note("%s", text.Plain(err.Error()))
			}
			reports := []inventory.Agent{}
			for _, p := range list {
				p.Sandbox = set.completeSandbox(p.Sandbox)
				reports = append(reports, inventory.ReportAgent(p, set.config))
			}
			return set.print(struct {
				Path   []string          `json:"path"`
				Agents []inventory.Agent `json:"agents"`
			}{filepath.SplitList(os.Getenv("PATH")), reports}, func() error {
				return printAgents(set.streams, reports)
			})
		}) // which may have a registry
}

func printAgents(s streams, reports []inventory.Agent) error {
	table := terminal.NewTable(s.out, "NAME", "AGENT", "FOUND", "COMMAND", "SANDBOX",
		"TESTED WITH", "FOLDERS", "FROM")
	for _, r := range reports {
		table.Row(r.Name, r.Title, cmp.Or(r.Found, "-"), strings.Join(r.Command, " "),
			r.Sandbox, cmp.Or(r.Checked, "-"), r.Folders(), r.Source)
	}
	return cmp.Or(table.Print(), terminal.Say(s.out, "\nSearched in PATH: %s\n\n"+
		"acp-agent doctor NAME says how to install one, and whether it works. Editors started "+
		"from a desktop often have a shorter PATH than a terminal. If an editor does not find an "+
		"agent that is found here, put the agent's absolute path into the configuration file: "+
		"see acp-agent agents --help.",
		strings.Join(filepath.SplitList(os.Getenv("PATH")), ", ")))
}
