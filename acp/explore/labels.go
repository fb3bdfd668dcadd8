package explore

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// root is a root of the session with the name by which answers call it.
type root struct {
	workspace.Root
	label string
}

// labelled names the roots by their folders. Folders of one name are told apart by as many
// of their parents as it takes.
func labelled(ws *workspace.Workspace) []root {
	opened := ws.Opened()
	roots := make([]root, len(opened))
	for i, r := range opened {
		roots[i] = root{Root: r, label: lastParts(r.Dir.String(), 1)}
	}
	for parts := 2; ; parts++ {
		again := sameLabels(roots)
		if len(again) == 0 {
			return roots
		}
		grown := false
		for _, i := range again {
			label := lastParts(roots[i].Dir.String(), parts)
			grown = grown || label != roots[i].label
			roots[i].label = label
		}
		if !grown {
			return roots
		}
	}
}

// sameLabels are the places of the roots whose label another one has too.
func sameLabels(roots []root) []int {
	uses := make(map[string]int)
	for _, r := range roots {
		uses[r.label]++
	}
	var same []int
	for i, r := range roots {
		if uses[r.label] > 1 {
			same = append(same, i)
		}
	}
	return same
}

// lastParts is the last n components of a path, or the path itself where it has no more.
func lastParts(path string, n int) string {
	parts := strings.FieldsFunc(filepath.ToSlash(path), func(r rune) bool { return r == '/' })
	if n > len(parts) || len(parts) == 0 {
		return filepath.ToSlash(path)
	}
	return strings.Join(parts[len(parts)-n:], "/")
}

// show is a file of the root as answers write it; rel is slash-separated, "" or "." for the root itself.
func (r root) show(rel string) string {
	if rel == "" || rel == "." {
		return printable(r.label)
	}
	return printable(strings.TrimSuffix(r.label, "/") + "/" + rel)
}

// path is the absolute path of a file of the root in the client's spelling.
func (r root) path(rel string) string {
	dir := r.Dir.String()
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += string(filepath.Separator)
	}
	return dir + filepath.FromSlash(rel)
}
