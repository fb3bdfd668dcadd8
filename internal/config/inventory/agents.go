// Package inventory says what can answer on this machine: which agents are installed, and which
// models the servers of the configuration offer.
package inventory

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Agent describes an agent, and whether its program is here.
type Agent struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Command []string `json:"command"`
	// Found is the absolute path of the program, "" if it was not found.
	Found string `json:"found,omitempty"`
	// Roots is how the agent learns about additional folders, and Flag its flag for them, if any.
	Roots string `json:"roots"`
	Flag  string `json:"rootsFlag,omitempty"`
	// Tools tells if the agent gets tools for folders that it learns about from its context:
	// "on", "write" or "off".
	Tools string `json:"rootsTools"`
	// Relay is "on" if acp-agent tells the agent's MCP servers about the roots.
	Relay string `json:"rootsRelay"`
	// Sandbox is how much the agent is restricted: "off", "write" or "strict". It explains an "off"
	// that was not configured.
	Sandbox string `json:"sandbox"`
	Login   string `json:"login,omitempty"`
	Install string `json:"install,omitempty"`
	// Checked is the version with which the profile was tested, if any.
	Checked string `json:"checked,omitempty"`
	// Source is "built in", "configuration" or "registry".
	Source string `json:"source"`
}

// ReportAgent describes the agent with a profile.
func ReportAgent(p profiles.Profile, c config.Config) Agent {
	r := Agent{
		Name: p.Name, Title: p.Title, Command: append([]string{p.Start.Command}, p.Start.Args...),
		Roots: p.Roots.Mode.String(),
		Flag:  p.Roots.Flag, Tools: p.Roots.Tools.String(), Relay: "off",
		Sandbox: process.InEffect(p.Sandbox), Login: p.Start.Login, Install: p.Start.Install,
		Checked: p.Checked, Source: "registry",
	}
	if _, configured := c.Agents[p.Name]; configured {
		r.Source = "configuration"
	} else if _, known := profiles.Find(profiles.Known(), p.Name); known {
		r.Source = "built in"
	}
	if p.Roots.Relay {
		r.Relay = "on"
	}
	if path, err := exec.LookPath(p.Start.Command); err == nil {
		if path, err = filepath.Abs(path); err == nil {
			r.Found = path
		}
	}
	return r
}

// Folders describes how the agent learns about additional folders, in a few words for a table.
func (r Agent) Folders() string {
	switch {
	case r.Roots == profiles.RootsByContext.String():
		return "prompt"
	case r.Roots != profiles.RootsAuto.String():
		return r.Roots
	case r.Flag != "":
		return "protocol or " + r.Flag
	}
	return "protocol or prompt"
}

// InDesktopPath reports whether programs in the directory of path are found by editors that a
// desktop starts.
func InDesktopPath(path string) bool {
	return runtime.GOOS == "windows" || slices.Contains(
		[]string{"/usr/local/bin", "/usr/bin", "/bin"}, filepath.Dir(path))
}

// UnknownAgent returns the error for a name that none of the agents in list has.
func UnknownAgent(name string, list []profiles.Profile) error {
	names := map[string]string{}
	for _, p := range list {
		names[p.Title], names[p.Name] = p.Name, p.Name
	}
	return fmt.Errorf("unknown agent %q%s", name, cmp.Or(text.Meant(name, names),
		"; acp-agent agents lists the known ones, and acp-agent agents --help explains how to "+
			"add one"))
}

// WithoutAdapter returns the program of an agent which speaks ACP only with another program, such
// as claude, or "".
func WithoutAdapter(p profiles.Profile) string {
	own, _, _ := strings.Cut(p.Start.Login, " ")
	if own = strings.TrimSuffix(own, ","); own == p.Start.Command || p.Identity != "" ||
		p.Start.Install == "" {
		return ""
	}
	return own
}
