package tools

import (
	"cmp"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Title describes a call of the tool to a person. The arguments may be incomplete or wrong.
func (t Tool) Title(arguments json.RawMessage) string {
	if t.title == nil {
		return t.Name
	}
	return t.title(arguments)
}

// about returns a verb and what a call is about, or the default if the argument is empty.
func about(verb, argument, byDefault string) string {
	return verb + " " + cmp.Or(text.Argument(argument), byDefault)
}

// within says where a search looks, "" for everywhere.
func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + text.Argument(path)
}

// quoted returns what a search looks for.
func quoted(argument string) string {
	return text.Quote(text.Truncate(argument, text.MaxArgument))
}

// maxPaths is the most paths of one call that [Paths] returns.
const maxPaths = 100

// Paths returns the paths in the arguments of a call, as the model wrote them, up to a limit. Some
// may be empty.
func Paths(arguments json.RawMessage) []string {
	var in struct {
		Path, To string
		Paths    []string
	}
	_ = json.Unmarshal(arguments, &in)
	return append([]string{in.Path, in.To}, in.Paths[:min(len(in.Paths), maxPaths)]...)
}

// Place is a file or directory that a call is about.
type Place struct {
	Ref  workspace.Ref
	Line int // from 1, 0 if the call names none
}

// Places returns where the paths in the arguments of a call lead, if they exist in the roots.
func (t Tool) Places(ws *workspace.Workspace, arguments json.RawMessage) []Place {
	if t.Kind == "" {
		return nil
	}
	var in struct{ Offset int }
	_ = json.Unmarshal(arguments, &in)
	var all []Place
	for _, path := range Paths(arguments) {
		if path == "" || len(all) == maxPaths {
			continue
		}
		if info, err := ws.Stat(path); err == nil {
			all = append(all, Place{info.Ref(), max(in.Offset, 0)})
		}
	}
	return all
}
