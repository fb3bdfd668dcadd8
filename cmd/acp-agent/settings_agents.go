package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/proxy"
)

// agentsKey is the configuration file's key for agents. Its value has a member for each, by name, whose members
// change a known agent, or describe another:
//
//	"agents": {
//	  "gemini": {"command": "/opt/node/bin/gemini", "env": {"GEMINI_API_KEY": "…"}},
//	  "mine":   {"command": "my-agent", "args": ["acp"], "rootsFlag": "--add-dir"}
//	}
const agentsKey = "agents"

// agentSetting is an agent in the configuration file. What it does not say stays as it is known.
type agentSetting struct {
	name    string
	line    int
	command string
	args    []string // nil if not given
	env     []string
	roots   *proxy.RootsMode
	flag    *string
	tools   *proxy.ToolsMode
	relay   *bool
	login   string
}

// agentKeys are the members of an agent.
func agentKeys() []string {
	return []string{"command", "args", "env", "roots", "rootsFlag", "rootsTools", "rootsRelay", "login"}
}

// profiles are the known agents as the configuration has them, by name.
func (f settingsFile) profiles() []proxy.Profile {
	list := proxy.KnownProfiles()
	for _, a := range f.agents {
		at := slices.IndexFunc(list, func(p proxy.Profile) bool { return p.Name == a.name })
		if at < 0 {
			list, at = append(list, proxy.Profile{Name: a.name, Title: a.name}), len(list)
		}
		list[at] = a.applied(list[at])
	}
	slices.SortFunc(list, func(a, b proxy.Profile) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// applied is a profile with the settings.
func (a agentSetting) applied(p proxy.Profile) proxy.Profile {
	p.Command = cmp.Or(a.command, p.Command)
	p.Login = cmp.Or(a.login, p.Login)
	if a.args != nil {
		p.Args = a.args
	}
	p.Env = append(slices.Clone(p.Env), a.env...)
	if a.roots != nil {
		p.Roots = *a.roots
	}
	if a.flag != nil {
		p.Flag, p.FlagSplits = *a.flag, ""
	}
	if a.tools != nil {
		p.Tools = *a.tools
	}
	if a.relay != nil {
		p.Relay = *a.relay
	}
	return p
}

// parseAgents reads the agents, strictly.
func parseAgents(path string, first int, text []byte) ([]agentSetting, error) {
	r := newSection(path, first, text)
	var list []agentSetting
	err := r.object("agents", func(name string) error {
		if name == "" || strings.ContainsAny(name, " \t\n/") || strings.HasPrefix(name, "-") {
			return r.fail("%q is no name for an agent: letters, digits and dashes make one", name)
		}
		a := agentSetting{name: name, line: r.line()}
		if err := r.object(name, func(member string) error { return a.member(r, member) }); err != nil {
			return err
		}
		if _, known := proxy.FindProfile(proxy.KnownProfiles(), name); !known && a.command == "" {
			return r.fail("agent %q needs a command: it is not one of the known agents", name)
		}
		list = append(list, a)
		return nil
	})
	return list, err
}

// member reads a member of an agent.
func (a *agentSetting) member(r *sectionReader, name string) (err error) {
	switch name {
	case "command":
		a.command, err = r.word(name)
		if err == nil && strings.Contains(filepath.ToSlash(a.command), "/") { // else it is looked for in PATH
			if a.command, err = place(r.path, a.command); err != nil {
				return r.fail("%q: %v", name, err)
			}
		}
	case "login":
		a.login, err = r.word(name)
	case "args":
		if r.decoder.Decode(&a.args) != nil || a.args == nil {
			return r.fail("%q needs a list of strings", name)
		}
	case "env":
		return r.object(name, func(variable string) error {
			value, err := r.word(variable)
			if err == nil && (variable == "" || strings.Contains(variable, "=")) {
				return r.fail("%q is no name for a variable", variable)
			}
			a.env = append(a.env, variable+"="+value)
			return err
		})
	case "roots":
		text, err := r.word(name)
		if err != nil {
			return err
		}
		way, err := proxy.ParseRootsMode(text)
		if err != nil {
			return r.fail("%q: %v", name, err)
		}
		a.roots = &way
	case "rootsFlag":
		flag, err := r.word(name)
		if err != nil {
			return err
		}
		a.flag = &flag
	case "rootsTools":
		text, err := r.word(name)
		if err != nil {
			return err
		}
		tools, err := proxy.ParseToolsMode(text)
		if err != nil {
			return r.fail("%q: %v", name, err)
		}
		a.tools = &tools
	case "rootsRelay":
		text, err := r.word(name)
		if err != nil {
			return err
		}
		if text != "on" && text != "off" {
			return r.fail("%q must be on or off, not %q", name, text)
		}
		relay := text == "on"
		a.relay = &relay
	default:
		return r.fail("unknown key %q%s", name, meant(name, agentKeys()))
	}
	return err
}
