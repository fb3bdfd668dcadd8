package mcproots

import (
	"path/filepath"
	"strings"
)

// name gives each root its folder's name, and lets those that share one grow by their parents until they differ. Roots
// have different real paths, so they do.
func name(roots []Root) {
	parts := make([][]string, len(roots))
	depth := make([]int, len(roots))
	for i, r := range roots {
		parts[i] = namesIn(r.Real.String())
		depth[i] = 1
	}
	for grown := true; grown; {
		grown = false
		same := map[string][]int{}
		for i := range roots {
			roots[i].Name = last(parts[i], depth[i])
			same[roots[i].Name] = append(same[roots[i].Name], i)
		}
		for _, twins := range same {
			if len(twins) < 2 {
				continue
			}
			for _, i := range twins {
				if depth[i] < len(parts[i]) {
					depth[i]++
					grown = true
				}
			}
		}
	}
}

// namesIn are the names in a path, after a first one for where it starts.
func namesIn(path string) []string {
	volume := filepath.VolumeName(path)
	names := []string{volume + string(filepath.Separator)}
	for _, n := range strings.Split(filepath.ToSlash(path[len(volume):]), "/") {
		if n != "" {
			names = append(names, n)
		}
	}
	return names
}

func last(parts []string, n int) string {
	parts = parts[len(parts)-n:]
	if top := parts[0]; strings.HasSuffix(top, string(filepath.Separator)) {
		return top + strings.Join(parts[1:], "/")
	}
	return strings.Join(parts, "/")
}
