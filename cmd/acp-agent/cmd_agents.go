package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/agents"
	"github.com/acp-agent/acp-agent/internal/inventory"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
)

const agentsHelp = `agents lists the agents that --agent accepts: the command that starts each,
where its program was found, how it learns about a session's folders besides
the working directory, its sandbox, and where this is known from: acp-agent
itself ("built in"), the configuration file or the copy of a registry (see
acp-agent agents update).

The configuration file can change these agents and add others:

  {"agents": {"gemini": {"command": "/opt/node/bin/gemini",
                         "env": {"HTTPS_PROXY": "http://proxy:3128"}},
              "mine": {"command": "my-agent", "args": ["acp"],
                       "rootsFlag": "--add-dir"}}}

  command, args, env   how the agent is started. A path is relative to the
                       configuration file; a name is looked up in PATH
  roots                how the agent learns about additional folders: by the
                       "protocol", by "flags", as "context" in the prompt, or
                       "auto" for the first of these that it supports
  rootsFlag            the flag that adds one folder, or ""
  rootsTools           "on", "write" or "off". An agent that learns about
                       folders as context also gets an MCP server with file
                       tools for them. With "on" the tools can write only if
                       the agent is known to ask first; with "write" they
                       always can
  rootsRelay           "on" or "off": whether acp-agent tells the agent's MCP
                       servers about the session's folders
  sandbox              "off", "write" or "strict": what the agent, and what it
                       starts, may do with files by itself (Linux 6.2 or
                       newer). With "write" it changes files only in the
                       session's folders, the temporary directory and its own
                       state; with "strict" it also reads only there and in
                       directories of the system. --sandbox takes precedence
  sandboxWrite         files and directories that it may also change, such as
                       "~/.npm"
  sandboxRead          files and directories that it may also read with
                       "strict"
  sandboxPorts         the only TCP ports that it may connect to, such as [443,
                       11434]
  sandboxHosts         the only hosts that it may connect to, such as
                       ["api.anthropic.com", "*.example.com"]
  sandboxFallback      "fail" or "warn": whether the agent starts where there
                       is no sandbox
  identity             the name under which its sessions are stored. They
                       belong to the agent however it is started; give two
                       agents that run the same program different ones to keep
                       their sessions apart
  remoteUsers          what users of acp-agent serve may use of it besides the
                       sessions that they made: a list of "sessions", "account"
                       and "extensions"

With --json, the list also contains how to install each agent and log in to it.`

// newAgents returns the command that lists the known agents.
func newAgents(s streams, set *settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the known agents, and which are installed",
		Long:  agentsHelp,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := set.agents()
			if err != nil {
				fmt.Fprintln(s.err, "acp-agent:", text.Plain(err.Error()))
			}
			var reports []inventory.Agent
			for _, p := range list {
				reports = append(reports, inventory.ReportAgent(p, set.config))
			}
			if asJSON {
				return writeJSON(s.out, struct {
					Path   []string          `json:"path"`
					Agents []inventory.Agent `json:"agents"`
				}{filepath.SplitList(os.Getenv("PATH")), reports})
			}
			return printAgents(s, reports)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	set.accept(cmd, "state-dir")
	cmd.AddCommand(newAgentsUpdate(s, set))
	return cmd
}

func printAgents(s streams, reports []inventory.Agent) error {
	table := terminal.NewTable(s.out, "NAME", "AGENT", "COMMAND", "FOUND", "FOLDERS",
		"SANDBOX", "TESTED WITH", "FROM")
	for _, r := range reports {
		table.Row(r.Name, r.Title, strings.Join(r.Command, " "), cmp.Or(r.Found, "-"), r.Folders(),
			r.Sandbox, cmp.Or(r.Checked, "-"), r.Source)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, `
Searched in PATH: %s
acp-agent doctor NAME says how to install one, and whether it works.
Editors started from a desktop often have a shorter PATH than a terminal. If an editor does not
find an agent that is found here, put the agent's absolute path into the configuration file: see
acp-agent agents --help.
`, os.Getenv("PATH"))
	return err
}

// registryPath returns where the copy of the registry is.
func (set *settings) registryPath() (string, error) {
	dir, err := set.stateDirectory()
	return filepath.Join(dir, "registry.json"), err
}

// registry returns the copy of the registry, the zero value if there is none.
func (set *settings) registry() (agents.Registry, error) {
	path, err := set.registryPath()
	if err != nil {
		return agents.Registry{}, err
	}
	return agents.Read(path)
}

// agents returns the profiles of all agents that --agent accepts: first those that are known or
// configured, then those that only the registry has, and an error if the registry cannot be read.
func (set *settings) agents() ([]profiles.Profile, error) {
	list := set.config.Profiles()
	r, err := set.registry()
	if err != nil {
		return list, err
	}
	return append(list, r.Profiles(list)...), nil
}
