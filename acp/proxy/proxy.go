package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Kind is the backend.Info.Kind of every proxy. The Profile that is stored with it is the agent's
// name; see [Owner].
const Kind = "proxy"

// Owner returns the agent that sessions of c's agent belong to in a store: that of
// [profiles.Identify] with the known profiles.
func Owner(c Command, p profiles.Profile) sessionstore.Agent {
	identity := profiles.Identify(profiles.Known(), p, c).Identity
	return sessionstore.Agent{Kind: Kind, Profile: identity}
}

// New returns a backend that answers from the agent that command starts. Initialize starts it. The
// backend implements [backend.Foreign].
func New(command Command, o Options) backend.Backend { return newProxy(command, o) }

func newProxy(command Command, o Options) *proxy {
	o = o.withDefaults()
	unlimited := func(context.Context) (func(), error) { return func() {}, nil }
	return &proxy{command: command, options: o, log: o.Logger, admit: unlimited,
		secrets: secret.OfCommand(command.Args, command.Env)}
}

type proxy struct {
	command  Command
	options  Options
	log      *slog.Logger
	children children
	// admit is called before a process starts, and what it returns when the process has ended.
	admit func(context.Context) (release func(), err error)
	// secrets are the secrets in the agent's environment and of MCP servers.
	secrets *secret.Scrubber

	mu         sync.Mutex
	client     backend.Client
	initialize backend.Raw  // the params of initialize for every child
	info       client.Agent // what the child that was initialized last said about itself
	login      backend.Raw  // the params of the authenticate that succeeded, nil if none did
}

// Initialize implements [backend.Backend]: it starts the agent.
func (p *proxy) Initialize(
	ctx context.Context, params backend.Raw, c backend.Client,
) (backend.Info, error) {
	// The version between the client and us does not matter to the agent.
	params = strictjson.Set(params, "protocolVersion", backend.Encode(client.ProtocolVersion))
	params, terminals := p.withholdTerminals(withoutUndeclared(params))
	p.mu.Lock()
	if p.client == nil {
		p.client = c
	}
	p.initialize = params
	p.mu.Unlock()
	if _, err := p.mainChild(ctx); err != nil {
		return backend.Info{}, err
	}
	profile := profiles.Identify(profiles.Known(), p.options.Profile, p.command)
	doubt := profiles.Doubt(p.agentInfo().Raw, profile)
	if doubt != "" {
		doubt = "The agent " + doubt + "."
	}
	return backend.Info{
		Kind:            Kind,
		Doubt:           doubt,
		Profile:         profile.Identity,
		Initialize:      p.confineLogins(p.agentInfo().Raw),
		ConnectsServers: true,
		Sandbox:         process.InEffect(p.options.Profile.Sandbox) + terminals,

		Restricted:    p.isRestricted(),
		ServerSandbox: p.options.Profile.Restriction(),

		OverlappingTurns: true, Usage: p.options.Profile.Usage.Counted(p.agentInfo().Release),
		NeverAsks: p.options.Profile.NeverAsks, AsksLittle: p.options.Profile.AsksLittle,
	}, nil
}

// agentInfo returns what the agent said about itself when it was last started.
func (p *proxy) agentInfo() client.Agent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

// setAgentInfo records a child's answer to initialize. The client cannot be told about changed
// capabilities, but messages to the agent follow them from now on.
func (p *proxy) setAgentInfo(info client.Agent) {
	p.mu.Lock()
	before := p.info
	p.info = info
	p.mu.Unlock()
	if profile := p.options.Profile; before.Raw == nil && !profile.IsChecked(info.Release) {
		p.log.Info("the agent has another major version than the one that acp-agent was tested with",
			"agent", info.Name, "version", info.Release, "tested", profile.Checked)
	}
	if before.Raw != nil && !bytes.Equal(before.Raw, info.Raw) {
		p.log.Warn("the agent's capabilities have changed since the editor connected: "+
			"restart the connection to use all of them", "agent", info.Name)
	}
}

// profile returns the profile of the agent that was last started.
func (p *proxy) profile() profiles.Profile {
	return p.options.Profile.ForRelease(p.agentInfo().Release)
}

// Call implements [backend.Backend]: it passes the request on.
func (p *proxy) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	if c := p.children.main(); c != nil {
		return p.forward(ctx, c, method, params)
	}
	return func() (backend.Raw, error) {
		c, err := p.mainChild(ctx)
		if err != nil {
			return nil, err
		}
		return p.forward(ctx, c, method, params)()
	}
}

// forward passes a request on to c. Messages that c sends after its response reach the client after
// our response. A successful authenticate or logout is repeated for the other children, and
// authenticate for children that start later.
func (p *proxy) forward(
	ctx context.Context, c *child, method string, params backend.Raw,
) backend.Work {
	work := c.requestFunc(ctx, method, params, func(backend.Raw, error) {
		c.router.barrier.add(jsonrpc.Answered(ctx))
	})
	if method != protocol.Authenticate && method != protocol.Logout {
		return work
	}
	return func() (backend.Raw, error) {
		result, err := work()
		if err != nil {
			return result, err
		}
		p.mu.Lock()
		p.login = nil
		if method == protocol.Authenticate {
			p.login = params
		}
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, p.options.limits.StartTimeout)
		defer cancel()
		for _, other := range p.children.list() {
			if other == c || !other.awaitStart(ctx) {
				continue
			}
			if _, err := other.request(ctx, method, params)(); err != nil {
				other.log.Warn("another process of the agent rejected a request", "method", method,
					"error", err)
			}
		}
		return result, nil
	}
}

// Notify implements [backend.Backend]: it passes the notification on.
func (p *proxy) Notify(_ context.Context, method string, params backend.Raw) {
	if c := p.children.main(); c != nil {
		c.notify(method, params)
	}
}

// Close implements [backend.Backend]: it ends the children with their process groups.
func (p *proxy) Close(ctx context.Context) error { return p.children.close(ctx) }

// addSecrets adds the secrets of the MCP servers in the params of a lifecycle request to those that
// are replaced in the agent's stderr and errors.
func (p *proxy) addSecrets(params backend.Raw) {
	for _, server := range listServers(params) {
		var values []string
		for _, pair := range slices.Concat(server.Env, server.Headers) {
			values = append(values, pair.Value)
		}
		p.secrets.AddServer(server.URL, server.Args, values)
	}
}

// undeclared are capabilities of JetBrains' editor that agents are not told of: they send the
// sessions of subagents in a way that is not ACP's, and requests about lists of sessions by ids in
// params and results, which are not mapped.
var undeclared = []string{"nativeSubagentSessions", "sessionIndex"}

// withoutUndeclared removes undeclared from the params of initialize, and session.cursors, a draft
// in which agents name positions that a fork could not go back to. Agents send subagents in
// JetBrains' way to its editor, whatever else it declares, so it cannot declare ACP's way either.
// The agent then reports the work of its subagents in the session itself, and offers session/list
// only.
func withoutUndeclared(params backend.Raw) backend.Raw {
	const capabilities = "clientCapabilities"
	path := []string{capabilities, "_meta", "jetbrains", "air"}
	params = strictjson.Remove(params, capabilities, "session", "cursors")
	air := strictjson.Last(params, path...)
	if !strictjson.IsObject(air) {
		return params
	}
	params = strictjson.Remove(params, capabilities, "subagents")
	list := strictjson.Last(air, "capabilities")
	var names []json.RawMessage
	_ = json.Unmarshal(list, &names) // anything but a list names none
	declared := slices.DeleteFunc(slices.Clone(names), func(raw json.RawMessage) bool {
		var name string
		return json.Unmarshal(raw, &name) == nil && slices.Contains(undeclared, name)
	})
	if len(declared) < len(names) {
		list, _ = strictjson.Append(nil, declared...)
		air = strictjson.Set(air, "capabilities", list)
	}
	return strictjson.SetAt(params, air, path...)
}
