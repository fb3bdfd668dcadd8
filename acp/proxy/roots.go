package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

const rootsMember = "additionalDirectories"

// rootsIn reads the roots in the params of a lifecycle request.
func rootsIn(params backend.Raw) (workspace.Roots, error) {
	var given struct {
		Cwd        string   `json:"cwd"`
		Additional []string `json:"additionalDirectories"`
	}
	if err := json.Unmarshal(params, &given); err != nil {
		return workspace.Roots{}, err
	}
	return workspace.NewRoots(given.Cwd, given.Additional)
}

// way is how a child with these capabilities is given roots, and with what flags.
func way(p profile.Profile, a client.Agent, roots workspace.Roots) (profile.Way, []string) {
	flags, flagged := p.Flags(roots.Additional())
	switch {
	case a.AdditionalDirectories && (p.Roots == profile.Auto || p.Roots == profile.ByProtocol):
		return profile.ByProtocol, nil
	case flagged && (p.Roots == profile.Auto || p.Roots == profile.ByFlags):
		return profile.ByFlags, flags
	}
	return profile.ByContext, nil
}

// fitted are the params of a lifecycle request as the child can have them. A child that takes roots by the
// protocol is sent each once (P2), another none. A request other than session/new always says which (P3).
func fitted(w profile.Way, method backend.Cause, params backend.Raw, roots workspace.Roots) (backend.Raw, error) {
	given, without, err := strictjson.Take(params, rootsMember)
	if err != nil {
		return nil, err
	}
	if w == profile.ByProtocol && (given != nil || method != backend.New) {
		list, err := json.Marshal(roots.Additional())
		if err != nil {
			return nil, err
		}
		params, err = strictjson.Put(params, rootsMember, list)
		if err != nil {
			return nil, err
		}
	} else {
		params = without
	}
	if method != backend.New && method != backend.Load {
		return params, nil
	}
	// The client may have asked for something else, which does not need the member.
	if servers, _, err := strictjson.Take(params, serversMember); err != nil || servers != nil {
		return params, err
	}
	return strictjson.Put(params, serversMember, backend.Raw(`[]`))
}

const serversMember = "mcpServers"

// Bounds of an introduction.
const (
	maxIntroduction = 16 << 10 // bytes of paths and names
	maxNames        = 12       // of a root's entries
)

// introduction tells a child of roots that it cannot be sent, in order, with what is in them, and of the tools for
// them if it has some.
func introduction(ctx context.Context, roots workspace.Roots, w *workspace.Workspace, tools toolServer) string {
	if roots.Additional().Len() == 0 {
		return "This session has no directory besides the working directory any more.\n"
	}
	var b strings.Builder
	b.WriteString("This session has several root directories, in this order:\n")
	for i, dir := range roots.All() {
		line := fmt.Sprintf("%d. %q", i+1, dir)
		if i == 0 {
			line += " (the working directory)"
		}
		line += contents(ctx, w, dir) + "\n"
		if b.Len()+len(line) > maxIntroduction {
			fmt.Fprintf(&b, "and %d more\n", roots.Len()-i)
			break
		}
		b.WriteString(line)
	}
	b.WriteString("You may read and change files in all of them as in the working directory. " +
		"Relative paths start at the working directory: use absolute paths for files in the others.\n")
	if tools.name != "" {
		does := "lists, reads, searches, writes and edits"
		if tools.readOnly {
			does = "lists, reads and searches"
		}
		fmt.Fprintf(&b, "The MCP server %q of this session has tools for all of them: it %s files there. "+
			"Use them where your own tools do not reach.\n", tools.name, does)
	}
	return b.String()
}

// contents are the names of a root's first entries; hidden ones, which are many and say little, are left out.
func contents(ctx context.Context, w *workspace.Workspace, dir workspace.Dir) string {
	if w == nil {
		return ""
	}
	opened, err := w.OpenDir(dir.String())
	if err != nil {
		return ""
	}
	defer opened.Close()
	entries, err := opened.Entries(ctx)
	if err != nil {
		return ""
	}
	var names []string
	more := 0
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name, "."):
		case len(names) == maxNames:
			more++
		case e.Type.IsDir():
			names = append(names, fmt.Sprintf("%q", e.Name+"/"))
		default:
			names = append(names, fmt.Sprintf("%q", e.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := ", with " + strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
