package tools

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// location says where a file is, in the client's spelling of the root.
type location struct {
	// Path is absolute.
	Path string
	// Root is the root that owns the file: the deepest of nested roots.
	Root string
}

// locate returns the location of ref, in a form that JSON can represent.
func locate(ref workspace.Ref) location {
	return location{Path: representable(ref.Path()), Root: ref.Root().Dir.String()}
}

// String returns the location on one line.
func (l location) String() string {
	return text.Printable(l.Path) + " (folder " + text.Printable(l.Root) + ")"
}

// below returns the path from the root, as the system separates names.
func (l location) below() string {
	rel, ok := strings.CutPrefix(l.Path, joinNative(l.Root, ""))
	if !ok {
		return l.Path
	}
	return rel
}

// joinNative joins a directory and a name with the platform's separator.
func joinNative(dir, name string) string {
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += string(filepath.Separator)
	}
	return dir + name
}

// representable returns s if JSON can represent it, otherwise s quoted in ASCII.
func representable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return fmt.Sprintf("%+q", s)
}

// truncation describes where a limit truncated a result.
type truncation struct {
	Unit  string // of the limit: bytes, lines, entries, matches or ms
	Limit int
	After string // the last item that is shown
	How   string // how to see more
	// Roots are the roots that a walk did not visit to the end.
	Roots []string
}

// page is the text of a result that is made of many parts, up to two limits.
type page struct {
	strings.Builder
	bytes int
	unit  string // what is counted: entries or matches
	most  int    // of these
	count int
	last  string // the name of the last part
}

// add adds a part, which counts as n, or returns the limit that it would exceed.
func (p *page) add(n int, name, part string) *truncation {
	switch {
	case p.count+n > p.most:
		return &truncation{Unit: p.unit, Limit: p.most}
	case p.Len()+len(part) > p.bytes:
		return &truncation{Unit: "bytes", Limit: p.bytes}
	}
	p.WriteString(part)
	p.count, p.last = p.count+n, name
	return nil
}

// note returns the line that tells a model about the truncation, "" for a nil cut.
func (c *truncation) note() string {
	if c == nil {
		return ""
	}
	after := ""
	if c.After != "" {
		after = " after " + text.Printable(c.After)
	}
	roots := ""
	if len(c.Roots) > 0 {
		roots = " Not searched completely: " + text.Printable(strings.Join(c.Roots, ", ")) + "."
	}
	return fmt.Sprintf("[truncated%s: the limit of %d %s was reached.%s %s]\n", after, c.Limit,
		c.Unit, roots, c.How)
}

// note returns the line that tells a model what was left out, "" for nothing.
func (o *skipped) note() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{o.binary, "binary"}, {o.large, "too large"}, {o.unreadable, "unreadable"},
		{o.unnameable, "with names that are not Unicode"}, {o.ignored, "that git ignores"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	for _, path := range o.system {
		parts = append(parts, text.Printable(path))
	}
	for _, why := range slices.Sorted(maps.Keys(o.refused)) {
		files := text.Count(o.refused[why], "file", "files")
		parts = append(parts, text.Printable(files+" ("+why+")"))
	}
	if len(parts) == 0 {
		return ""
	}
	note := "[left out: " + strings.Join(parts, ", ")
	if o.unreadable > 0 {
		note += "; first " + text.Printable(representable(o.first))
	}
	return note + "]\n"
}
