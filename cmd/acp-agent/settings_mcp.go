package main

import (
	"slices"

	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

// serversKey is the configuration file's key for what MCP servers are given. Its value has a member for each, by the
// name that the client calls it, or "*" for all others:
//
//	"mcpServers": {
//	  "files":  {"readOnlyTools": "allow"},
//	  "legacy": {"roots": "off", "templates": "on"},
//	  "*":      {"onShrink": "notify"}
//	}
const serversKey = "mcpServers"

// serverSetting is an MCP server in the configuration file.
type serverSetting struct {
	name   string
	policy mcpclient.Policy
}

// serverKeys are the members of a server.
func serverKeys() []string { return []string{"roots", "onShrink", "templates", "readOnlyTools"} }

// mcpPolicy is what a server is given.
func (f settingsFile) mcpPolicy(name string) mcpclient.Policy {
	for _, wanted := range []string{name, "*"} {
		if i := slices.IndexFunc(f.servers, func(s serverSetting) bool { return s.name == wanted }); i >= 0 {
			return f.servers[i].policy
		}
	}
	return mcpclient.Policy{}
}

// parseServers reads the servers, strictly.
func parseServers(path string, first int, text []byte) ([]serverSetting, error) {
	r := newSection(path, first, text)
	var list []serverSetting
	err := r.object(serversKey, func(name string) error {
		s := serverSetting{name: name}
		if err := r.object(name, func(member string) error { return s.member(r, member) }); err != nil {
			return err
		}
		list = append(list, s)
		return nil
	})
	return list, err
}

// member reads a member of a server.
func (s *serverSetting) member(r *sectionReader, name string) (err error) {
	switches := map[string]mcpclient.Switch{"on": mcpclient.On, "off": mcpclient.Off}
	switch name {
	case "roots":
		s.policy.Roots, err = choice(r, name, switches)
	case "templates":
		s.policy.Templates, err = choice(r, name, switches)
	case "onShrink":
		s.policy.OnShrink, err = choice(r, name, map[string]mcpclient.OnShrink{"restart": mcpclient.Restart, "notify": mcpclient.Notify})
	case "readOnlyTools":
		s.policy.ReadOnly, err = choice(r, name, map[string]mcpclient.ReadOnly{"ask": mcpclient.Ask, "allow": mcpclient.Allow})
	default:
		return r.fail("unknown key %q%s", name, meant(name, serverKeys()))
	}
	return err
}

// choice reads one of some words.
func choice[T any](r *sectionReader, name string, choices map[string]T) (T, error) {
	word, err := r.word(name)
	if err != nil {
		var none T
		return none, err
	}
	value, known := choices[word]
	if !known {
		words := make([]string, 0, len(choices))
		for w := range choices {
			words = append(words, w)
		}
		slices.Sort(words)
		return value, r.fail("%q is %q: it is one of %q", name, word, words)
	}
	return value, nil
}
