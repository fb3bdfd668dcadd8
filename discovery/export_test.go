package discovery

import (
	"context"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// Options are the limits that tests change, by name.
type Options map[string]int

// ScanWith is Scan with options.
func ScanWith(ctx context.Context, ws *workspace.Workspace, o Options) (*Catalog, error) {
	l := defaultLimits
	for name, n := range o {
		if name == "Timeout" {
			l.time = time.Duration(n)
			continue
		}
		*map[string]*int{"MaxDepth": &l.depth, "MaxDirs": &l.dirs, "MaxArtifacts": &l.artifacts,
			"MaxFile": &l.fileSize, "MaxBytes": &l.bytes, "ImportDepth": &l.importDepth,
			"MaxImports": &l.imports, "Text": &l.text}[name] = n
	}
	return scan(ctx, ws, l)
}

// Row is a row of the table.
type Row struct {
	Pattern, Source, Member        string
	Kind                           Kind
	List, Opencode, Plugin, Inside bool
}

// Table returns the rows of the table.
func Table() (all []Row) {
	for _, r := range rows() {
		all = append(all, Row{r.pattern, r.source, r.member, r.kind,
			r.list, r.variable == variables()["opencode"], r.plugin, r.inside})
	}
	return all
}

// CheckPattern reports what is wrong with the pattern of a row.
func CheckPattern(pattern string) error {
	_, err := row{}.at(pattern)
	return err
}

// Expand expands a body as that of a command in Markdown.
func Expand(body, arguments string) Expansion { return Artifact{}.expand(body, arguments) }

// Inert returns the parts of an expansion that are not run or inserted.
func Inert(e Expansion) []string { return e.inert }

// Shown returns how many bytes of a source are in the assembled text.
func Shown(s Source) int { return len(s.text) }
