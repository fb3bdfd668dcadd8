package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/proxy"
)

// agentsFlags are those of the agents subcommand.
type agentsFlags struct{ json bool }

// newAgents lists the agents that can be put behind us by name.
func newAgents(s streams, f *serveFlags) *cobra.Command {
	var a agentsFlags
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents that --agent knows, and which are installed",
		Long: `agents lists the agents that --agent knows by name: how each is started, where it was found, and how it is
given the directories of a session besides the working directory. The configuration file can change each of
them, and add others:

  {"agents": {"gemini": {"command": "/opt/node/bin/gemini", "env": {"HTTPS_PROXY": "http://proxy:3128"}},
              "mine": {"command": "my-agent", "args": ["acp"], "rootsFlag": "--add-dir"}}}

  command, args, env   how it is started. A path starts where the file is, a name is looked for in PATH
  roots                how it is given directories: by its "protocol", by "flags", in words as "context", or "auto": the first
                       of them that it takes
  rootsFlag            the flag for one directory, "" for none
  rootsTools           "on", "write" or "off". An agent that is told of directories in words is also given an MCP server with
                       tools for them, which write only if the agent is known to ask before it does so, or with "write"
  rootsRelay           "on" or "off": whether its MCP servers are told the session's directories by acp-agent
  login                how a person logs in, for error messages

With --json the list also says how each is installed and logged in to.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.list(s, f.profiles)
		},
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return heeding(cmd)
}

// agentReport is what there is to say of an agent.
type agentReport struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Command []string `json:"command"`
	// Found is the program's absolute path, empty if it was not found.
	Found string `json:"found,omitempty"`
	// Roots is how it is given directories, Flag the flag if it has one.
	Roots string `json:"roots"`
	Flag  string `json:"rootsFlag,omitempty"`
	// Tools says whether it is given tools for directories that it takes no other way: "on", "write" or "off".
	Tools string `json:"rootsTools"`
	// Relay is "on" if its MCP servers are told the session's roots by us.
	Relay   string `json:"rootsRelay"`
	Login   string `json:"login,omitempty"`
	Install string `json:"install,omitempty"`
	// Checked is the version that its profile was tried with, empty if it was not.
	Checked string `json:"checked,omitempty"`
}

func reportOf(p proxy.Profile) agentReport {
	r := agentReport{
		Name: p.Name, Title: p.Title, Command: append([]string{p.Command}, p.Args...), Roots: p.Roots.String(),
		Flag: p.Flag, Tools: p.Tools.String(), Relay: onOff(p.Relay), Login: p.Login, Install: p.Install, Checked: p.Checked,
	}
	if path, err := exec.LookPath(p.Command); err == nil {
		if path, err = filepath.Abs(path); err == nil {
			r.Found = path
		}
	}
	return r
}

func (a agentsFlags) list(s streams, profiles []proxy.Profile) error {
	reports := make([]agentReport, len(profiles))
	for i, p := range profiles {
		reports[i] = reportOf(p)
	}
	if a.json {
		return json.NewEncoder(s.out).Encode(struct {
			Path   []string      `json:"path"`
			Agents []agentReport `json:"agents"`
		}{filepath.SplitList(os.Getenv("PATH")), reports})
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tAGENT\tCOMMAND\tFOUND\tDIRECTORIES\tCHECKED WITH")
	for _, r := range reports {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Title, strings.Join(r.Command, " "), dash(r.Found), r.directories(), dash(r.Checked))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, `
Looked for in PATH: %s
An editor that was started from a desktop often has a shorter PATH than a terminal. If it does not find an agent
that is found here, write the agent's absolute command into the configuration file: see acp-agent agents --help.
`, os.Getenv("PATH"))
	return err
}

// directories says how an agent is given directories.
func (r agentReport) directories() string {
	switch {
	case r.Roots != proxy.RootsAuto.String():
		return r.Roots
	case r.Flag != "":
		return "protocol, else " + r.Flag
	}
	return "protocol, else context"
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
