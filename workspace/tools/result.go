package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// Place is where something is, as answers say it: in the client's spelling.
type Place struct {
	// Path is absolute.
	Path string `json:"path"`
	// Root is the root that owns it: of nested roots the deepest.
	Root string `json:"root"`
}

// PlaceOf is the place of what a reference names.
func PlaceOf(ref workspace.Ref) Place {
	return Place{Path: ref.Path(), Root: ref.Root().Dir.String()}
}

// in is the place of the entry name of a directory at p.
func (p Place) in(name string) Place { return Place{joinNative(p.Path, name), p.Root} }

// joinNative is the path of an entry of dir, spelled the platform's way.
func joinNative(dir, name string) string {
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += string(filepath.Separator)
	}
	return dir + name
}

// parent is the place of the directory that holds name, which is at p. It keeps the separator at its end.
func (p Place) parent(name string) Place {
	return Place{strings.TrimSuffix(p.Path, name), p.Root}
}

// Cut says where an answer ends before what it is about does.
type Cut struct {
	Limit string `json:"limit" jsonschema:"the limit that was reached: bytes, lines, entries, matches, files or time"`
	Bound int64  `json:"bound" jsonschema:"how much the limit allows; milliseconds for time"`
	After string `json:"after,omitempty" jsonschema:"the last that is shown"`
	Next  int    `json:"next_offset,omitempty" jsonschema:"the line to go on with"`
	How   string `json:"how" jsonschema:"how to see more"`
}

// note is a Cut for a model, on a line of its own; "" for none.
func (c *Cut) note() string {
	if c == nil {
		return ""
	}
	after := ""
	if c.After != "" {
		after = " after " + Printable(c.After)
	}
	unit := c.Limit
	if c.Limit == "time" {
		unit = "ms"
	}
	return fmt.Sprintf("[cut%s: the limit of %d %s was reached. %s]\n", after, c.Bound, unit, c.How)
}

// LeftOut counts what was passed over.
type LeftOut struct {
	Binary     int    `json:"binary,omitempty" jsonschema:"files that are not UTF-8 text"`
	Large      int    `json:"too_large,omitempty" jsonschema:"files over the limit of size"`
	Unreadable int    `json:"unreadable,omitempty" jsonschema:"files and directories that could not be opened or read"`
	First      string `json:"first_unreadable,omitempty" jsonschema:"the first of those, and why"`
	Unnameable int    `json:"unnameable,omitempty" jsonschema:"names that are not Unicode text, so that no answer can hold them"`
}

// leftOut says what a scan passed over, nil if nothing was.
func leftOut(s Skipped, unnameable int) *LeftOut {
	l := LeftOut{Binary: s.Binary, Large: s.Large, Unreadable: s.Unreadable, Unnameable: unnameable}
	if s.Unreadable > 0 {
		l.First = shown(joinSlash(s.First.Root.Dir.String(), s.First.Rel) + ": " + s.First.Err.Error())
	}
	if l == (LeftOut{}) {
		return nil
	}
	return &l
}

func (l *LeftOut) note() string {
	if l == nil {
		return ""
	}
	note := "[left out:"
	for _, one := range []struct {
		n    int
		what string
	}{{l.Binary, "binary"}, {l.Large, "too large"}, {l.Unreadable, "unreadable"}, {l.Unnameable, "with names that are not Unicode"}} {
		if one.n > 0 {
			note += fmt.Sprintf(" %d %s,", one.n, one.what)
		}
	}
	note = note[:len(note)-1]
	if l.First != "" {
		note += "; first " + Printable(l.First)
	}
	return note + "]\n"
}

// shown is a text of which JSON can hold each character.
func shown(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return fmt.Sprintf("%+q", text)
}
