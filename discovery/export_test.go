package discovery

import (
	"context"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// Options has what tests change of a scan.
type Options struct{ limits limits }

// ScanWith is Scan with options.
func ScanWith(ctx context.Context, ws *workspace.Workspace, o Options) (*Catalog, error) {
	return scan(ctx, ws, o.limits)
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

// SetLimit sets a limit of a scan.
func SetLimit(o *Options, name string, n int) {
	switch l := &o.limits; name {
	case "MaxDepth":
		l.depth = n
	case "MaxDirs":
		l.dirs = n
	case "MaxArtifacts":
		l.artifacts = n
	case "MaxFile":
		l.fileSize = int64(n)
	case "MaxBytes":
		l.bytes = int64(n)
	case "ImportDepth":
		l.importDepth = n
	case "MaxImports":
		l.imports = n
	case "Text":
		l.text = n
	case "Timeout":
		l.time = time.Duration(n)
	default:
		panic("no such limit: " + name)
	}
}

// Expand expands a body as that of a command in Markdown.
func Expand(body, arguments string) Expansion { return Artifact{}.expand(body, arguments) }

// Inert returns the parts of an expansion that are not run or inserted.
func Inert(e Expansion) []string { return e.inert }

// TextOf returns the text of an artifact without its frontmatter.
func TextOf(ctx context.Context, c *Catalog, a Artifact) (string, error) { return c.text(ctx, a) }

// Shown returns how many bytes of a source are in the assembled text.
func Shown(s Source) int { return len(s.text) }
