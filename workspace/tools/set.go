package tools

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/workspace"
)

// Set is the tools over one workspace. It is immutable and safe for concurrent use; making one is cheap.
type Set struct {
	ws    *workspace.Workspace
	o     Options
	tools []Tool
}

// New returns the tools over ws. Where ws is nil they can be listed, and every call fails with
// [workspace.ErrClosed]. The workspace stays its owner's.
func New(ws *workspace.Workspace, o Options) *Set {
	s := &Set{ws: ws, o: o.withDefaults()}
	s.tools = []Tool{
		s.listRootsTool(), s.listDirectoryTool(), s.fileInfoTool(), s.readFileTool(), s.findFilesTool(), s.searchTool(),
	}
	if o.Permit != nil {
		s.tools = append(s.tools, s.writeFileTool(), s.editFileTool())
	}
	return s
}

// Tools are all tools, always in the same order: those that only read come first. The caller owns the slice.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Tool is the tool of this name.
func (s *Set) Tool(name string) (Tool, bool) {
	for _, t := range s.tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// Call calls the tool of this name. The error is an *[UnknownToolError], or that of [Tool.Call].
func (s *Set) Call(ctx context.Context, name string, arguments json.RawMessage) (Result, error) {
	t, ok := s.Tool(name)
	if !ok {
		return Result{}, &UnknownToolError{Name: name}
	}
	return t.Call(ctx, arguments)
}

// Options configure a [Set]. A zero field is its default.
type Options struct {
	// Permit decides about each change. If it is nil no tool that changes a file is offered (A30).
	Permit Permit
	// MaxBytes is the most text of files, lines and names in one answer, in bytes. Default 64 KiB.
	MaxBytes int
	// MaxLines is the most lines that read_file gives. Default 2,000.
	MaxLines int
	// MaxEntries is the most entries that list_directory and find_files give. Default 1,000.
	MaxEntries int
	// MaxMatches is the most matches that search gives. Default 200.
	MaxMatches int
	// MaxLine is how much of a line search gives, in bytes. Default 500.
	MaxLine int
	// MaxFileSize is the size in bytes over which a file is neither searched nor changed. Default [DefaultMaxFileSize].
	MaxFileSize int64
	// MaxFiles is the most files that find_files and search look at. Default [DefaultMaxFiles].
	MaxFiles int
	// MaxTime is how long find_files and search may take. Default 30 s.
	MaxTime time.Duration
}

func (o Options) withDefaults() Options {
	setDefault(&o.MaxBytes, 64<<10)
	setDefault(&o.MaxLines, 2000)
	setDefault(&o.MaxEntries, 1000)
	setDefault(&o.MaxMatches, 200)
	setDefault(&o.MaxLine, 500)
	setDefault(&o.MaxFileSize, DefaultMaxFileSize)
	setDefault(&o.MaxFiles, DefaultMaxFiles)
	setDefault(&o.MaxTime, 30*time.Second)
	return o
}

func setDefault[N int | int64 | time.Duration](n *N, value N) {
	if *n == 0 {
		*n = value
	}
}
