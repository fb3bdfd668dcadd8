package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// bridge is a session's MCP servers on their way from one activation to the next: prepared among what can fail, and
// changed by commit (A12, M15). Its zero value is that of a runtime that connects them itself.
type bridge struct {
	set     *mcpclient.Set
	change  *mcpclient.Change
	configs []mcpclient.Config
	made    bool // the set is this activation's own
}

// bridgeTo prepares the servers of an activation on w, with those that the live session has.
func (a *agent) bridgeTo(id sessionstore.ID, w *workspace.Workspace, before *session, configs []mcpclient.Config) (bridge, error) {
	if a.init.connects() == backend.BackendConnects {
		return bridge{}, nil
	}
	b := bridge{configs: configs}
	if a.options.MCPPolicy != nil {
		for i := range b.configs {
			b.configs[i].Policy = a.options.MCPPolicy(b.configs[i].Name)
		}
	}
	if before != nil {
		b.set = before.servers.set
	} else {
		o := a.options.tuning.MCP
		o.Logger = o.Logger.With("session", id)
		b.set, b.made = mcpclient.NewSet(a.options.tuning.Starter, o), true
	}
	var err error
	b.change, err = prepareServers(b.set, w, b.configs)
	return b, err
}

// prepareServers prepares a change of a set. Too many servers are the client's fault.
func prepareServers(set *mcpclient.Set, w *workspace.Workspace, configs []mcpclient.Config) (*mcpclient.Change, error) {
	change, err := set.Prepare(w, configs)
	if many := (*mcpclient.TooManyError)(nil); errors.As(err, &many) {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", many)
	}
	return change, err
}

// commit changes the servers. From then on they speak to h.
func (b *bridge) commit(h *host) {
	if b.change != nil {
		b.change.Commit(h)
	}
}

// abandon ends a set that no session has, of an activation that is not committed.
func (b *bridge) abandon(ctx context.Context) error {
	if !b.made {
		return nil
	}
	return b.set.Close(ctx)
}

// serving is the MCP servers of an active session.
type serving struct {
	set *mcpclient.Set // nil if the runtime connects them

	given []mcpclient.Config // the client's

	mu     sync.Mutex
	found  []mcpclient.Config // those that were found in the roots, and allowed
	passed bool               // to the activation that takes the session's place
}

// tools are the tools of the servers.
func (s *serving) tools() backend.Tools {
	if s.set == nil {
		return backend.NoTools{}
	}
	return s.set
}

// pass leaves the servers to the next activation. What this one has begun to change is changed before it returns, and
// nothing after that.
func (s *serving) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = true
}

// close ends the servers, unless they were passed on.
func (s *serving) close(ctx context.Context) error {
	s.mu.Lock()
	passed := s.passed
	s.mu.Unlock()
	if passed || s.set == nil {
		return nil
	}
	return s.set.Close(ctx)
}

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
	err = mcpclient.NewConsents(h.agent.options.ConsentDir).Ask(ctx, h, mcpclient.FoundServer{Root: found.Root.Real, File: found.Path, Config: asWritten})
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

// mcpTransports are the optional transports that were advertised; stdio always is.
type mcpTransports struct{ http, sse bool }

// decodeServers reads mcpServers strictly (W12). What is wrong is reported without the values, which may be secrets.
func decodeServers(field strictjson.Field, p presence, offered mcpTransports) ([]mcpclient.Config, []strictjson.Violation) {
	if field.IsNull() || (!field.Present() && p == optional) {
		return nil, nil
	}
	entries, wrong := field.Masked().Items()
	servers := make([]mcpclient.Config, 0, len(entries))
	for _, entry := range entries {
		if len(wrong) >= strictjson.MaxViolations {
			break
		}
		s, bad := decodeServer(entry, offered)
		servers, wrong = append(servers, s), append(wrong, bad...)
	}
	return servers, wrong
}

func decodeServer(entry strictjson.Field, offered mcpTransports) (mcpclient.Config, []strictjson.Violation) {
	object, wrong := entry.Object()
	if wrong != nil {
		return mcpclient.Config{}, wrong
	}
	name, wrong := object.Field("name").Text()
	c := mcpclient.Config{Name: name, Transport: mcpclient.Stdio}
	if kind := object.Field("type"); kind.Present() {
		text, bad := kind.Text()
		if bad != nil {
			return c, append(wrong, bad...)
		}
		c.Transport = mcpclient.Transport(text)
	}
	var bad [3][]strictjson.Violation
	switch {
	case c.Transport == mcpclient.Stdio:
		c.Command, bad[0] = object.Field("command").Text()
		c.Args, bad[1] = object.Field("args").Texts()
		c.Env, bad[2] = decodePairs(object.Field("env"))
	case c.Transport == mcpclient.HTTP && offered.http, c.Transport == mcpclient.SSE && offered.sse:
		c.URL, bad[0] = object.Field("url").Text()
		c.Headers, bad[1] = decodePairs(object.Field("headers"))
	default:
		bad[0] = []strictjson.Violation{object.Field("type").Refuse(strictjson.Unsupported).
			Expecting(fmt.Sprintf("MCP servers of type %q were not advertised in mcpCapabilities", bounded(string(c.Transport))))}
	}
	for _, b := range bad {
		wrong = append(wrong, b...)
	}
	return c, wrong
}

// decodePairs reads a list of {name, value}.
func decodePairs(field strictjson.Field) ([]mcpclient.Pair, []strictjson.Violation) {
	entries, wrong := field.Items()
	pairs := make([]mcpclient.Pair, 0, len(entries))
	for _, entry := range entries {
		if len(wrong) >= strictjson.MaxViolations {
			break
		}
		object, bad := entry.Object()
		if bad == nil {
			name, noName := object.Field("name").Text()
			value, noValue := object.Field("value").Text()
			bad = append(noName, noValue...)
			pairs = append(pairs, mcpclient.Pair{Name: name, Value: value})
		}
		wrong = append(wrong, bad...)
	}
	return pairs, wrong
}

// bounded cuts a client's text for an error.
func bounded(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
