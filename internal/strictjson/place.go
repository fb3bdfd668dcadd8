package strictjson

import (
	"strconv"
	"strings"
)

// maxPath bounds the bytes of a path in a violation.
const maxPath = 1024

// place is where a value stands: its path from the outermost object, and for an
// entry of an array the array's path and the index.
type place struct {
	path   string
	index  int
	entry  bool
	masked bool
}

// member is the place of a member of the object at p.
func (p place) member(name string) place {
	path := p.full()
	if path != "" {
		path += "."
	}
	return place{path: bounded(path + name), masked: p.masked}
}

// item is the place of entry i of the array at p.
func (p place) item(i int) place {
	return place{path: p.full(), index: i, entry: true, masked: p.masked}
}

// full is p as one path: "mcpServers[0]".
func (p place) full() string {
	if !p.entry {
		return p.path
	}
	return bounded(p.path + "[" + strconv.Itoa(p.index) + "]")
}

func bounded(path string) string {
	if len(path) <= maxPath {
		return path
	}
	return strings.ToValidUTF8(path[:maxPath], "") + "…"
}
