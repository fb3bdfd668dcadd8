package explore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// showRoots answers /roots.
func (t *turn) showRoots(ctx context.Context, _ prompt) error {
	for i, r := range t.roots {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		state, err := t.workspace().State(i)
		if err != nil {
			return err
		}
		if err := t.write(describeRoot(r, state)); err != nil {
			return err
		}
	}
	servers := t.host.Tools().Servers()
	if len(servers) == 0 {
		return t.write("MCP servers: none\n")
	}
	var b strings.Builder
	b.WriteString("MCP servers:\n\n")
	for _, s := range servers {
		fmt.Fprintf(&b, "- %s (%s): %s\n", text.Code(s.Name), s.Transport, s.State)
	}
	return t.write(b.String())
}

func describeRoot(r root, state workspace.State) string {
	role := ""
	if r.Index == 0 {
		role = ", the working directory: relative paths start here"
	}
	return fmt.Sprintf("Root %d: **%s**%s\n\n- path: %s\n- real path: %s\n- URI: %s\n- state: %s\n\n", r.Index, text.Code(r.label), role,
		text.Code(r.Dir.String()), text.Code(r.Real.String()), text.Code(r.Real.URI()), describeState(state))
}

func describeState(state workspace.State) string {
	switch state {
	case workspace.OK:
		return "ok"
	case workspace.Moved:
		return "moved: the directory has another path now; the session still uses it"
	case workspace.Replaced:
		return "replaced: the path names another directory now; the session still uses the original one"
	case workspace.Missing:
		return "missing: the directory has been deleted"
	case workspace.Unreachable:
		return "unreachable: the path cannot be looked up"
	default:
		return string(state)
	}
}

// root is a root of the session with the label that answers use for it.
type root struct {
	workspace.Root
	label string
}

// labelRoots labels each root with the name of its folder. Folders with the same name get as many of their parents as it takes to
// distinguish them.
func labelRoots(ws *workspace.Workspace) []root {
	opened := ws.Opened()
	roots := make([]root, len(opened))
	for i, r := range opened {
		roots[i] = root{Root: r, label: lastParts(r.Dir.String(), 1)}
	}
	for parts := 2; ; parts++ {
		uses := make(map[string]int)
		for _, r := range roots {
			uses[r.label]++
		}
		longer := false
		for i, r := range roots {
			if uses[r.label] > 1 {
				roots[i].label = lastParts(r.Dir.String(), parts)
				longer = longer || roots[i].label != r.label
			}
		}
		if !longer {
			return roots
		}
	}
}

// lastParts returns the last n components of a path, or the whole path if it has fewer.
func lastParts(path string, n int) string {
	parts := strings.FieldsFunc(filepath.ToSlash(path), func(r rune) bool { return r == '/' })
	if n > len(parts) || len(parts) == 0 {
		return filepath.ToSlash(path)
	}
	return strings.Join(parts[len(parts)-n:], "/")
}

// show returns how answers write the path rel of the root; "" and "." are the root itself.
func (r root) show(rel string) string {
	if rel == "" || rel == "." {
		return text.Printable(r.label)
	}
	return text.Printable(strings.TrimSuffix(r.label, "/") + "/" + rel)
}

// showPath returns how answers write an absolute path: below the root's label if it lies in the root.
func (r root) showPath(path string) string {
	rel, err := filepath.Rel(r.Dir.String(), path)
	if err != nil || !filepath.IsLocal(rel) {
		return text.Printable(path)
	}
	return r.show(filepath.ToSlash(rel))
}

// path returns the absolute path of rel as the client spells the root.
func (r root) path(rel string) string {
	dir := r.Dir.String()
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += string(filepath.Separator)
	}
	return dir + filepath.FromSlash(rel)
}

// show returns how answers write a path in the workspace.
func (s *session) show(ref workspace.Ref) string { return s.roots[ref.Root().Index].show(ref.Rel()) }

// suggest returns a hint for a relative path that does not exist but would in another root, or that begins with the label of a
// root, as answers write it.
func (s *session) suggest(command, path string) string {
	if filepath.IsAbs(path) {
		return ""
	}
	for _, r := range s.roots {
		for _, rel := range []string{path, strings.TrimPrefix(filepath.ToSlash(path), r.label+"/")} {
			if info, err := s.workspace().Stat(r.path(rel)); err == nil && info.Mode().IsRegular() {
				return fmt.Sprintf(" A relative path starts at %s. Did you mean %s?", text.Code(s.roots[0].label), text.Code(command+" "+r.path(rel)))
			}
		}
	}
	return ""
}
