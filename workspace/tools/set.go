package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Set holds the tools of one workspace. It is immutable and safe for concurrent use. Creating one
// is cheap.
type Set struct {
	ws     *workspace.Workspace
	permit Permit
	editor Editor // nil for none
	limits limits
	tools  []Tool
}

// Options configure a [Set].
type Options struct {
	// Permit decides about each change. If it is nil, the set has only tools that read.
	Permit Permit
	// Editor, if not nil, is asked by read_file, read_files, write_file and edit_file for unsaved
	// texts. They change files that it has open through it. All other tools use the disk.
	Editor Editor

	limits limits
}

// limits bound the results of tools. A zero field means its default.
type limits struct {
	bytes int // text of files, lines and names in one result; default 64 KiB
	lines int // lines of a file that are returned; default 2,000
	// entries that list_directory, directory_tree and find_files return; default 1,000
	entries int
	matches int // matches that search returns; default 200
	line    int // bytes of one line that search returns; default 500
	// bytes above which a file is not changed or shown as media, and half of those above which it
	// is not searched; default 8 MiB
	fileSize int64
	time     time.Duration // of a walk, or of planning an edit; default 30 s
}

func (l limits) withDefaults() limits {
	return limits{
		bytes:    cmp.Or(l.bytes, 64<<10),
		lines:    cmp.Or(l.lines, 2000),
		entries:  cmp.Or(l.entries, 1000),
		matches:  cmp.Or(l.matches, 200),
		line:     cmp.Or(l.line, 500),
		fileSize: cmp.Or(l.fileSize, defaultMaxFileSize),
		time:     cmp.Or(l.time, 30*time.Second),
	}
}

// New returns the tools of ws, which the caller must close. If ws is nil, the tools can be listed,
// but every call fails with [workspace.ErrClosed].
func New(ws *workspace.Workspace, o Options) *Set {
	s := &Set{ws: ws, permit: o.Permit, editor: o.Editor, limits: o.limits.withDefaults()}
	for _, t := range definitions() {
		if t.Annotations.ReadOnly || o.Permit != nil {
			t.set = s
			s.tools = append(s.tools, t)
		}
	}
	return s
}

// Tools returns all tools in a fixed order, those that only read first. The caller owns the slice.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Call calls the named tool, as [Tool.Call] does.
func (s *Set) Call(ctx context.Context, name string, arguments json.RawMessage) (Result, error) {
	for _, t := range s.tools {
		if t.Name == name {
			return t.Call(ctx, arguments, Caller{})
		}
	}
	return Result{}, fmt.Errorf("unknown tool %q", text.Truncate(name, 100))
}
