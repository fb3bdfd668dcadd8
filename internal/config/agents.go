package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
)

// Agent changes a known agent or describes another one. Absent members change nothing.
type Agent struct {
	Command    string              `json:"command"`
	Args       *[]string           `json:"args"`
	Env        map[string]string   `json:"env"`
	Roots      *profiles.RootsMode `json:"roots"`
	RootsFlag  *string             `json:"rootsFlag"`
	RootsTools *profiles.ToolsMode `json:"rootsTools"`
	RootsRelay *onOff              `json:"rootsRelay"`
	Identity   string              `json:"identity"`
	// State are directories in which it keeps its own files.
	State []string `json:"state"`
	// RemoteUsers names members of [acp.RemoteRights].
	RemoteUsers []string `json:"remoteUsers"`

	Restriction
}

// check checks what decoding does not.
func (a Agent) check(name string) error {
	for _, name := range []string{name, cmp.Or(a.Identity, name)} {
		if name == "" || strings.ContainsAny(name, " \t\n/") || strings.HasPrefix(name, "-") {
			return fmt.Errorf("%q is not a valid name: use letters, digits and dashes", name)
		}
	}
	if _, known := profiles.Find(profiles.Known(), name); !known && a.Command == "" {
		return errors.New("needs a command, because it is not one of the known agents")
	}
	for variable := range a.Env {
		if variable == "" || strings.Contains(variable, "=") {
			return fmt.Errorf("env: %q is not a valid variable name", variable)
		}
	}
	_, err := a.RemoteRights()
	return err
}

// RemoteRights returns what the users of a server may use of the agent besides their own sessions.
func (a Agent) RemoteRights() (g acp.RemoteRights, err error) {
	for _, name := range a.RemoteUsers {
		switch name {
		case "sessions":
			g.Sessions = true
		case "account":
			g.Account = true
		case "extensions":
			g.Extensions = true
		default:
			return acp.RemoteRights{}, fmt.Errorf(
				`remoteUsers: unknown value %q; use "sessions", "account" or "extensions"`, name)
		}
	}
	return g, nil
}

// Profiles returns the known agents as configured, sorted by name.
func (c Config) Profiles() []profiles.Profile {
	list := profiles.Known()
	for name, a := range c.Agents {
		i := slices.IndexFunc(list, func(p profiles.Profile) bool { return p.Name == name })
		if i < 0 {
			list, i = append(list, profiles.Profile{Name: name, Title: name}), len(list)
		}
		a.apply(&list[i])
	}
	slices.SortFunc(list, func(a, b profiles.Profile) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// apply changes a profile as configured.
func (a Agent) apply(p *profiles.Profile) {
	p.Start.Command = cmp.Or(a.Command, p.Start.Command)
	override(&p.Start.Args, a.Args)
	override(&p.Roots.Mode, a.Roots)
	override(&p.Roots.Tools, a.RootsTools)
	p.Identity = cmp.Or(a.Identity, p.Identity)
	if a.RootsFlag != nil {
		p.Roots.Flag, p.Roots.FlagSplits = *a.RootsFlag, ""
	}
	override(&p.Roots.Relay, (*bool)(a.RootsRelay))
	p.Sandbox = a.Settings()
	for _, dir := range a.State {
		dir = strings.TrimSuffix(dir, "/")
		p.State.OwnDirs, p.State.Writes = append(p.State.OwnDirs, dir), append(p.State.Writes, dir+"/")
	}
	p.Start.Env = slices.Clone(p.Start.Env)
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		p.Start.Env = append(p.Start.Env, name+"="+a.Env[name])
	}
}
