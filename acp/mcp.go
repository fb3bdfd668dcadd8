package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/servers"
	"github.com/acp-agent/acp-agent/acp/internal/servers/found"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// sessionServers are the MCP servers of a session.
type sessionServers struct {
	set   *servers.Set
	ours  bool               // the backend does not connect the servers, and uses set
	given []mcpclient.Config // with the session
	found []mcpclient.Config // in the roots, and allowed by the user; guarded by the queue
	// change is made once the session is active, because it cannot be undone.
	change *mcpclient.Change
	// owned means that the session closes set, unlike the one that it replaces or that replaces it.
	// Guarded by the session's state.
	owned bool
}

// openServers prepares the MCP servers of s, in place of those of previous, if that is not nil.
func (s *session) openServers(previous *session) (*sessionServers, error) {
	a := s.agent
	mine := &sessionServers{given: s.params.servers, ours: a.info().MCP == backend.AdapterConnects}
	for i := range mine.given {
		if err := a.applyPolicy(&mine.given[i]); err != nil {
			return nil, err
		}
	}
	if previous != nil {
		mine.set = previous.servers.set
	} else {
		o := a.options.tuning.MCP
		o.Logger = o.Logger.With("session", s.id)
		o.Elicitation = a.connection.clientCapabilities().elicitationModes()
		mine.set, mine.owned = servers.NewSet(a.starting, o), true
	}
	var err error
	mine.change, err = prepareServers(mine.set, s.workspace, mine.given)
	return mine, err
}

// changeServers makes a change of the servers. From then on they send their requests to s, and
// those to the model to the session's backend, if it has one.
func (s *session) changeServers(change *mcpclient.Change) {
	model, _ := s.backend.(backend.Sampler)
	s.servers.set.Commit(change, s, model)
}

// ownServers notes whether the session closes the set of its servers.
func (s *session) ownServers(owned bool) { s.withState(func() { s.servers.owned = owned }) }

// closeServers closes the set of the servers, if the session has its own.
func (s *session) closeServers(ctx context.Context) error {
	owned := false
	s.withState(func() { owned = s.servers != nil && s.servers.owned })
	if !owned {
		return nil
	}
	return s.servers.set.Close(ctx)
}

// applyPolicy makes c follow the policy. If it returns an error, the server must not be used: the
// policy is not known, or does not let a remote peer use the server.
func (a *agent) applyPolicy(c *mcpclient.Config) error {
	policy := mcp.Policy{}
	err := a.tasks.Guard("MCPPolicy", func() error {
		if a.options.MCPPolicy != nil {
			policy = a.options.MCPPolicy(c.Name)
		}
		return nil
	})
	if err == nil && a.remote {
		err = checkRemote(policy, *c)
	}
	c.Apply(policy)
	a.restrictLikeAgent(c)
	return err
}

// checkRemote returns an error if a remote peer may not use the server. It does not quote the
// configuration, which for a server found in a root may hold values of our environment.
func checkRemote(p mcp.Policy, c mcpclient.Config) error {
	ok := p.URL != "" && c.URL == p.URL
	if c.Transport == mcp.Stdio {
		ok = len(p.Command) > 0 && len(c.Env) == 0 && c.Command == p.Command[0] &&
			slices.Equal(c.Args, p.Command[1:])
	}
	if ok {
		return nil
	}
	return stateError(jsonrpc.CodeInvalidParams, fmt.Sprintf("the operator of this server does "+
		"not allow the MCP server %s: use only those that are allowed by name, with the same "+
		"command line or URL, and without environment variables",
		text.Quote(text.Truncate(c.Name, 64))),
		reasonData{Reason: "server_not_allowed"})
}

// restrictLikeAgent restricts a server that the agent connects too as the agent is restricted, or
// more if its policy says so.
func (a *agent) restrictLikeAgent(c *mcpclient.Config) {
	s, own := a.info().ServerSandbox, c.Policy.Sandbox
	if a.info().MCP != backend.BackendConnects || s.Mode == backend.SandboxOff {
		return
	}
	if own.Mode == backend.SandboxStrict {
		s.Mode = own.Mode
	}
	if own.Mode != backend.SandboxOff {
		s.Ports, s.Hosts = s.Ports.And(own.Ports), s.Hosts.And(own.Hosts)
	}
	c.Policy.Sandbox = s
}

// prepareServers prepares a change of set. For too many servers it returns an invalid params error.
func prepareServers(set *servers.Set, w *workspace.Workspace, configs []mcpclient.Config) (
	*mcpclient.Change, error) {
	change, err := set.Prepare(w, configs)
	if many := (*mcpclient.TooManyError)(nil); errors.As(err, &many) {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", many)
	}
	return change, err
}

// StartServer implements [backend.Host].
func (s *session) StartServer(ctx context.Context, artifact discovery.Artifact) error {
	if !s.servers.ours {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"the agent behind this one connects MCP servers itself: add %s to its configuration",
			artifact.Name)
	}
	config, err := s.allowServer(ctx, artifact)
	if err != nil {
		return err
	}
	return s.addServer(ctx, config)
}

// allowServer asks the user whether an MCP server of the catalog may start, unless they have
// allowed it permanently. It returns the configuration to start.
func (s *session) allowServer(
	ctx context.Context, artifact discovery.Artifact,
) (mcpclient.Config, error) {
	server, err := found.New(artifact, s.guarded.Checked(permission.Confirmed)) // they are asked below
	if err != nil {
		return mcpclient.Config{}, err
	}
	why := s.agent.info().transports.refusal(server.Config.Name, server.Config.Transport)
	if why != "" {
		return mcpclient.Config{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", why)
	}
	if err := s.agent.applyPolicy(&server.Start); err != nil {
		return mcpclient.Config{}, err
	}
	consents := found.NewConsents(s.agent.options.ConsentDir)
	if err := consents.Ask(ctx, s.unrecorded(), s.guarded, &server); err != nil {
		return mcpclient.Config{}, err
	}
	// The user may have taken a while.
	return server.Start, server.CheckDir(s.guarded)
}

// addServer adds a server to the session, in place of one that was found under the same name. The
// client's own servers stay, even if one has the same name.
func (s *session) addServer(ctx context.Context, config mcpclient.Config) error {
	if at := s.gate.Phase(); at == gate.Opening || at == gate.Closed {
		return errors.New("the session is not open")
	}
	at := s.agent.home.queues.Ticket(s.id, turns.Ordinary, nil)
	defer at.Release()
	if err := at.Acquire(ctx); err != nil {
		return err
	}
	if at.Queue.Active() != s {
		return errors.New("the session was loaded again in the meantime: try again")
	}
	same := func(c mcpclient.Config) bool { return c.Name == config.Name }
	all := append(slices.DeleteFunc(slices.Clone(s.servers.found), same), config)
	change, err := prepareServers(s.servers.set, s.guarded, slices.Concat(s.servers.given, all))
	if err != nil {
		return err
	}
	s.changeServers(change)
	s.servers.found = all
	return nil
}

// mcpTransports are the optional transports that initialize advertised.
type mcpTransports struct{ http, sse bool }

// refusal says why a server cannot be used and what to do, or returns "" if its transport was
// advertised.
func (m mcpTransports) refusal(server string, t mcp.Transport) string {
	if t == mcp.Stdio || t == mcp.HTTP && m.http || t == mcp.SSE && m.sse {
		return ""
	}
	instead := "the type stdio"
	if m.http {
		instead += ", or http, for which most servers have another address"
	}
	return fmt.Sprintf("the MCP server %s has the type %q, which was not advertised in "+
		"mcpCapabilities: use %s", text.Quote(text.Truncate(server, 64)),
		text.Truncate(string(t), 64), instead)
}

// decodeServers reads mcpServers. Its violations do not quote values, which may be secrets. A
// remote peer's servers may have no members that it does not check, because they are passed on.
func (a *agent) decodeServers(
	v *strictjson.Violations, f strictjson.Field, p presence,
) []mcpclient.Config {
	if f.IsNull() || (!f.Present() && p == optional) {
		return nil
	}
	servers := []mcpclient.Config{}
	for _, entry := range v.Items(f.Masked()) {
		if v.Full() {
			break
		}
		if object, ok := v.Object(entry); ok {
			c := decodeServer(v, object, a.info().transports)
			servers = append(servers, c)
			if a.remote {
				refuseOthers(v, object, c.Transport)
			}
		}
	}
	return servers
}

// decodeServer reads an entry of mcpServers. Which members it has depends on its transport.
func decodeServer(
	v *strictjson.Violations, object strictjson.Object, offered mcpTransports,
) mcpclient.Config {
	c := mcpclient.Config{Name: v.Text(object.Field("name"))}
	transport, ok := decodeTransport(v, c.Name, object.Field("type"), offered)
	c.Transport = transport
	switch {
	case !ok:
	case transport == mcp.Stdio:
		c.Command = v.Text(object.Field("command"))
		c.Args = v.Texts(object.Field("args"))
		c.Env = decodePairs(v, object.Field("env"))
	default:
		c.URL = v.Text(object.Field("url"))
		c.Headers = decodePairs(v, object.Field("headers"))
	}
	return c
}

// refuseOthers reports the members of a server that its transport does not have.
func refuseOthers(
	v *strictjson.Violations, object strictjson.Object, transport mcp.Transport,
) {
	known := []string{"name", "type", "url", "headers"}
	if transport == mcp.Stdio {
		known = []string{"name", "type", "command", "args", "env"}
	}
	for name, field := range object.Fields() {
		if !slices.Contains(known, name) && !field.IsNull() {
			v.Add(field.Refuse(strictjson.Unsupported).Expecting(
				"only what a server of this type needs"))
		}
	}
}

// decodeTransport reads the type of a server, which is stdio if it is absent.
func decodeTransport(
	v *strictjson.Violations, server string, f strictjson.Field, offered mcpTransports,
) (transport mcp.Transport, ok bool) {
	if !f.Present() {
		return mcp.Stdio, true
	}
	name, wrong := f.Text()
	if wrong != nil {
		v.Add(wrong...)
		return "", false
	}
	transport = mcp.Transport(name)
	if why := offered.refusal(server, transport); why != "" {
		v.Add(f.Refuse(strictjson.Unsupported).Expecting(why))
		return transport, false
	}
	return transport, true
}

// decodePairs reads a list of {name, value}.
func decodePairs(v *strictjson.Violations, f strictjson.Field) []mcpclient.Pair {
	pairs := []mcpclient.Pair{}
	for _, entry := range v.Items(f) {
		if v.Full() {
			break
		}
		if object, ok := v.Object(entry); ok {
			pairs = append(pairs, mcpclient.Pair{
				Name: v.Text(object.Field("name")), Value: v.Text(object.Field("value")),
			})
		}
	}
	return pairs
}
