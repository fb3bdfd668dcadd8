package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
)

// StartServer implements [backend.Host].
func (h *host) StartServer(ctx context.Context, found discovery.Artifact) error {
	if h.servers.set == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the agent behind this one connects MCP servers itself: add %s to its configuration", found.Name)
	}
	if found.Kind != discovery.MCPServer || found.State != discovery.Active || found.Server == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s is no MCP server that can be started: %s", found.Name, found.Reason)
	}
	e := expansion{root: found.Root.Dir.String()}
	config := configOf(found, e.expand)
	dir, err := h.placeOf(found, e.expand(found.Server.Cwd))
	if err = errors.Join(e.err, err); err != nil {
		return fmt.Errorf("MCP server %s of %s cannot be started: %w", found.Name, found.Path, err)
	}
	config.Secrets, config.Dir = e.values, dir
	asWritten := configOf(found, func(text string) string { return text })
	asWritten.Dir = dir
	err = mcpclient.NewConsents(h.agent.options.ConsentDir).Ask(ctx, h, mcpclient.Candidate{Root: found.Root.Real, File: found.Path, Config: asWritten})
	if err != nil {
		return err
	}
	return h.addServer(config)
}

// placeOf is where a server that was found runs: in the folder of its root, or below it where its file says so. A relative
// path in the file of one root never means a file of another.
func (h *host) placeOf(found discovery.Artifact, cwd string) (string, error) {
	dir := cwd
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(found.Root.Dir.String(), dir)
	}
	info, err := h.workspace.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	return dir, err
}

// addServer adds a server to those of the session, in place of one that was found under the same name. The client's own
// stay, whatever they are called.
func (h *host) addServer(config mcpclient.Config) error {
	h.mu.Lock()
	live := h.phase > hostOpening && h.phase < hostClosed
	h.mu.Unlock()
	if !live {
		return errors.New("the session is not open")
	}
	if policy := h.agent.options.MCPPolicy; policy != nil {
		config.Policy = earned(policy(config.Name))
	}
	s := h.servers
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passed {
		return errors.New("the session was loaded anew: try again")
	}
	found := slices.DeleteFunc(slices.Clone(s.found), func(c mcpclient.Config) bool { return c.Name == config.Name })
	found = append(found, config)
	change, err := prepareServers(s.set, h.workspace, slices.Concat(s.given, found))
	if err != nil {
		return err
	}
	change.Commit(h)
	s.found = found
	return nil
}

// earned is what a user's policy for a name means for a server that a repository gave it: what it takes away holds, and
// what it gives does not.
func earned(p mcpclient.Policy) mcpclient.Policy {
	p.ReadOnly, p.Templates = mcpclient.Ask, mcpclient.Off
	if p.Roots == mcpclient.On {
		p.Roots = mcpclient.Default
	}
	return p
}

// configOf is the configuration of a server that was found, with every text as expand gives it.
func configOf(found discovery.Artifact, expand func(string) string) mcpclient.Config {
	server := found.Server
	pairs := func(secrets discovery.Secrets) []mcpclient.Pair {
		list := []mcpclient.Pair{}
		for _, name := range secrets.Names() {
			value, _ := secrets.Value(name)
			list = append(list, mcpclient.Pair{Name: name, Value: expand(value)})
		}
		return list
	}
	c := mcpclient.Config{
		Name: found.Name, Transport: mcpclient.Transport(server.Transport), Command: expand(server.Command),
		Env: pairs(server.Env), URL: expand(string(server.URL)), Headers: pairs(server.Headers), Args: []string{},
	}
	for _, arg := range server.Args {
		c.Args = append(c.Args, expand(arg))
	}
	return c
}

// expansion replaces what the configuration files of MCP servers leave to the environment.
type expansion struct {
	root   string   // the folder of the file
	values []string // what the environment gave, which may be secrets
	err    error    // what could not be replaced
}

// expand replaces the variables of text.
func (e *expansion) expand(text string) string {
	return mcpclient.ReplaceVariables(text, func(v mcpclient.Variable) string {
		if v.IsFolder() {
			return e.root
		}
		value, set := os.LookupEnv(v.Name)
		switch {
		case set:
			e.values = append(e.values, value)
			return value
		case v.HasDefault:
			return v.Default
		case strings.Contains(v.Name, ":"):
			e.fail(fmt.Errorf("%s is a value that only an editor can ask for: put it into the environment, and ${NAME} into the file", v.Text))
		default:
			e.fail(fmt.Errorf("%s is not set in the environment", v.Text))
		}
		return v.Text
	})
}

func (e *expansion) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}
