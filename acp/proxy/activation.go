package proxy

import (
	"encoding/json"
	"iter"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/workspace"
)

// activation is what the client asked for when it opened a session. It does not change, so the
// parts of a bridge share it without a lock.
type activation struct {
	proxy   *proxy
	host    backend.Host
	roots   workspace.Roots
	params  backend.Raw // of its lifecycle request, to open it again in a restarted child
	history iter.Seq2[backend.Update, error]
	// nested returns the instructions of directories below the roots, and whether the list is
	// complete. It looks for them only once.
	nested func() (list []discovery.Artifact, complete bool)
}

// newActivation returns the activation of a session with the given roots.
func newActivation(
	p *proxy, asked backend.Activation, h backend.Host, roots workspace.Roots,
) *activation {
	return &activation{proxy: p, host: h, roots: roots, params: asked.Params,
		history: asked.History, nested: sync.OnceValues(func() ([]discovery.Artifact, bool) {
			return p.findNested(h.Catalog(), roots)
		})}
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

// likelyMode returns how a child is given the roots if it can do what the last one could.
func (a *activation) likelyMode() profiles.RootsMode {
	mode, _ := a.proxy.options.Profile.Roots.Choose(a.proxy.agentInfo().AdditionalDirectories,
		a.roots.Additional())
	return mode
}

// given returns the additional directories in which the child may write because it is given them in
// this way.
func (a *activation) given(mode profiles.RootsMode) workspace.Dirs {
	if mode == profiles.RootsByContext {
		return workspace.Dirs{}
	}
	return a.roots.Additional()
}

// sameRoots reports whether both have the same directories as roots, in the same order, and these
// are still where they were.
func (a *activation) sameRoots(other *activation) bool {
	if !a.roots.Equal(other.roots) {
		return false
	}
	mine, err := mcproots.Take(a.host.Workspace())
	theirs, otherErr := mcproots.Take(other.host.Workspace())
	return err == nil && otherErr == nil && mine.Equal(theirs)
}
