package discovery

import (
	"context"
	"time"
)

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
	case "MaxFrontmatter":
		l.frontmatter = n
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

// KindOf returns the kind of the artifacts in files of a format.
func KindOf(f Format) Kind { return f.kind() }
