package proxy

import (
	"encoding/json"
	"iter"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/relays"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// setup has the params and the host of a session that the client opened, and what the MCP servers
// need that the child gets for it: those of the client, perhaps behind relays, and our tool server.
// It does not change once it is part of a bridge.
type setup struct {
	proxy   *proxy
	host    backend.Host
	roots   workspace.Roots
	params  backend.Raw // of its lifecycle request, to open it again in a restarted child
	history iter.Seq2[backend.Update, error]
	// nested returns the instructions of directories below the roots, and whether the list is
	// complete. It looks for them only once.
	nested func() (list []discovery.Artifact, complete bool)

	tells  bool            // our tool server tells the child what is in the roots
	relays *relays.Session // off if none of the servers has one
}

// newSetup returns the setup of a session with the given roots, whose relays are off.
func newSetup(p *proxy, asked backend.Activation, h backend.Host, roots workspace.Roots) *setup {
	s := &setup{proxy: p, host: h, roots: roots, params: asked.Params,
		history: asked.History, nested: sync.OnceValues(func() ([]discovery.Artifact, bool) {
			return briefing.FindNested(h.Catalog(), roots, p.options.Profile.Finds)
		}),
		relays: relays.New(h, p.log)}
	s.tells = p.options.Profile.Context.ByServer && p.offersTools() &&
		briefing.SystemText(s.parts(state{RootsMode: s.likelyMode(asked.Cause)})) != ""
	return s
}

// parseRoots returns the roots in the params of a lifecycle request.
func parseRoots(params backend.Raw) (workspace.Roots, error) {
	var p struct {
		Cwd        string   `json:"cwd"`
		Additional []string `json:"additionalDirectories"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return workspace.Roots{}, err
	}
	return workspace.NewRoots(p.Cwd, p.Additional)
}

// likelyMode returns how a child is given the roots when the session is opened, if it can do what
// the last one could.
func (s *setup) likelyMode(cause backend.Cause) profiles.RootsMode {
	profile := s.proxy.options.Profile.Roots
	takes := s.proxy.program.Info().AdditionalDirectories &&
		(cause == backend.New || !profile.OnlyNew)
	mode, _ := profile.Choose(takes, s.roots.Additional())
	return mode
}

// given returns the additional directories in which the child may write because it is given them in
// this way.
func (s *setup) given(mode profiles.RootsMode) workspace.Dirs {
	if mode == profiles.RootsByContext {
		return workspace.Dirs{}
	}
	return s.roots.Additional()
}

// sameRoots reports whether both have the same directories as roots, in the same order, and these
// are still where they were.
func (s *setup) sameRoots(other *setup) bool {
	if !s.roots.Equal(other.roots) {
		return false
	}
	mine, err := mcproots.Take(s.host.Workspace())
	theirs, otherErr := mcproots.Take(other.host.Workspace())
	return err == nil && otherErr == nil && mine.Equal(theirs)
}

// parts returns what to tell a child session.
func (s *setup) parts(saved state) []briefing.Part {
	o := s.proxy.options
	return briefing.Facts{Roots: s.roots, Catalog: s.host.Catalog(), Nested: s.nested,
		Finds: o.Profile.Finds, Mode: saved.RootsMode, Server: s.tool(saved),
		MaxInstructions: o.limits.MaxInstructions, MaxSkills: o.limits.MaxSkills}.Parts()
}

// systemParts returns the parts to add to a child's system prompt when the session is opened. It
// returns nil if the child takes none, or if the client uses an extension that excludes the
// standard way. Only a new session uses them: Claude Code keeps the system prompt with which a
// session began, so changes are also sent in a prompt.
func (s *setup) systemParts(agent client.Agent, target state) []briefing.Part {
	extended := strictjson.Find(s.params, "_meta", protocol.SystemPrompt) != nil
	if !agent.SystemPrompt || extended {
		return nil
	}
	return s.parts(target)
}
