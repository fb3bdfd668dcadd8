package proxy

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text/secret"
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
func New(command Command, o Options) backend.Backend {
	return newProxy(command, o, unlimited)
}

func newProxy(
	command Command, o Options, admit func(context.Context) (release func(), err error),
) *proxy {
	o = o.withDefaults()
	p := &proxy{command: command, options: o, log: o.Logger,
		secrets: secret.OfCommand(command.Args, command.Env)}
	p.program = child.New(child.Config{Command: command, Env: p.askEnv(), Profile: o.Profile,
		Sandboxer: o.Sandboxer, Workspace: o.Workspace, Trace: o.Trace, Logger: o.Logger,
		Secrets: p.secrets, Admit: admit, Refused: p.tellRefusal, Limits: o.limits.Limits})
	return p
}

// unlimited lets any number of processes start.
func unlimited(context.Context) (release func(), err error) { return func() {}, nil }

type proxy struct {
	command Command
	options Options
	log     *slog.Logger
	program *child.Program
	// secrets are the secrets in the agent's environment and of MCP servers.
	secrets *secret.Scrubber

	mu   sync.Mutex
	uses []*childUse // of all children
}

// Initialize implements [backend.Backend]: it starts the agent.
func (p *proxy) Initialize(
	ctx context.Context, params backend.Raw, c backend.Client,
) (backend.Info, error) {
	// The version between the client and us does not matter to the agent.
	params = strictjson.Set(params, "protocolVersion", backend.Encode(client.ProtocolVersion))
	params, terminals := p.withholdTerminals(withoutUndeclared(params))
	if err := p.program.Initialize(ctx, params, c); err != nil {
		return backend.Info{}, err
	}
	agent := p.program.Info()
	profile := profiles.Identify(profiles.Known(), p.options.Profile, p.command)
	doubt := profiles.Doubt(agent.Raw, profile)
	if doubt != "" {
		doubt = "The agent " + doubt + "."
	}
	return backend.Info{
		Kind:            Kind,
		Doubt:           doubt,
		Profile:         profile.Identity,
		Initialize:      p.confineLogins(agent.Raw),
		ConnectsServers: true,
		Sandbox:         process.InEffect(p.options.Profile.Sandbox) + terminals,

		Restricted:    p.isRestricted(),
		ServerSandbox: p.options.Profile.Restriction(),

		OverlappingTurns: true, Usage: p.options.Profile.Usage.Counted(agent.Release),
		NeverAsks: p.options.Profile.NeverAsks, AsksLittle: p.options.Profile.AsksLittle,
	}, nil
}

// profile returns the profile of the agent that was last started.
func (p *proxy) profile() profiles.Profile {
	return p.options.Profile.ForRelease(p.program.Info().Release)
}

// Call implements [backend.Backend]: it passes the request on.
func (p *proxy) Call(ctx context.Context, method string, params backend.Raw) backend.Work {
	return p.program.Call(ctx, method, params)
}

// Notify implements [backend.Backend]: it passes the notification on.
func (p *proxy) Notify(_ context.Context, method string, params backend.Raw) {
	p.program.Notify(method, params)
}

// Close implements [backend.Backend]: it ends the children with their process groups.
func (p *proxy) Close(ctx context.Context) error { return p.program.Close(ctx) }

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
