package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// Tool is one tool of a [Set]. It is immutable and safe for concurrent use.
type Tool struct {
	// Name identifies the tool in calls.
	Name string
	// Description tells a model what the tool does and when to use it.
	Description string
	// InputSchema is the JSON schema (2020-12) of the arguments.
	InputSchema json.RawMessage
	Annotations Annotations
	// Kind says what a call does, "" if no kind describes it.
	Kind Kind
	// HoldsFile reports whether a call holds whole files in memory, perhaps several times.
	HoldsFile bool

	schema *schema                                // of the arguments
	title  func(arguments json.RawMessage) string // nil for the name
	// permitting returns the same tool of a set with another permit, nil for a host's tool.
	permitting func(Permit, func(Change), Check) Tool
	// call returns the result, and a note about the arguments, "" for none.
	call func(context.Context, json.RawMessage) (Result, string, error)
}

// Kind is the kind of a tool, in the terms of ACP.
type Kind string

// The kinds of tools.
const (
	KindRead    Kind = "read"
	KindSearch  Kind = "search"
	KindEdit    Kind = "edit"
	KindDelete  Kind = "delete"
	KindMove    Kind = "move"
	KindExecute Kind = "execute"
	KindThink   Kind = "think"
)

// Annotations describe the effects of a tool, in the terms of MCP.
type Annotations struct {
	// ReadOnly reports that the tool changes nothing. A tool of a [Set] that is not read-only asks
	// its [Permit] first.
	ReadOnly bool
	// Destructive reports that the tool can delete or overwrite data.
	Destructive bool
	// Idempotent reports that repeating a call with the same arguments has no further effect.
	Idempotent bool
}

// Result is the result of a call.
type Result struct {
	// Text is the result for a model or a person.
	Text string
	// Media, if not nil, is the content that Text describes.
	Media *Media
	// Found are the files, or lines of files, that a search found.
	Found []FoundAt
}

// FoundAt is where a search found something.
type FoundAt struct {
	Path string // absolute
	Line int    // from 1, 0 for a whole file
}

// Call calls the tool with a JSON object of arguments; empty arguments mean an empty object.
// Arguments may have the names that other agents have for them, such as file_path for path.
// Duplicate and invalid arguments are rejected, all in one error. Unknown arguments are ignored,
// and the text says so. Errors tell a model what to do instead; they wrap the errors of package
// workspace and of the host's [Permit]. If ctx ends, Call returns its cause.
func (t Tool) Call(ctx context.Context, arguments json.RawMessage) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	result, note, err := t.call(ctx, arguments)
	switch {
	case err != nil && note != "" && ctx.Err() == nil:
		return Result{}, fmt.Errorf("%w. Also, %s", err, note)
	case err != nil:
		return Result{}, err
	case note != "":
		result.Text = strings.TrimSuffix(result.Text, "\n") + "\n[ignored: " + note + "]\n"
	}
	return result, nil
}

// Check decides about an access to a file, as for [workspace.Workspace.Checked]. It may wait for a
// person. What visits many files, such as a search, does not call it: it leaves out what the
// workspace's own check refuses.
type Check func(ctx context.Context, a workspace.Access, before error) error

// Permitting returns the tool for one call, which asks permit about its changes. made, if not nil,
// is told each change as it was made: an edit may have been made in a text that differs in other
// lines from the one that was permitted. check, if not nil, decides about each access. A host's own
// tool is returned unchanged.
func (t Tool) Permitting(permit Permit, made func(Change), check Check) Tool {
	if t.permitting == nil {
		return t
	}
	return t.permitting(permit, made, check)
}

// definition returns a tool of a set.
type definition func(*Set) Tool

// define completes t with the schema of In and the function that serves its calls. title describes
// a call to a person.
func define[In any](
	t Tool, title func(In) string, run func(*Set, context.Context, In) (Result, error),
) definition {
	return bind(t, title, func(
		s *Set, ctx context.Context, in In, arguments json.RawMessage,
	) (Result, error) {
		if s.ws == nil {
			return Result{}, s.explain(t.Name, "", workspace.ErrClosed)
		}
		result, err := run(s.during(ctx), ctx, in)
		switch {
		case err == nil: // even if ctx has ended since
			return result, nil
		case ctx.Err() != nil:
			return Result{}, context.Cause(ctx)
		default:
			return Result{}, s.explain(t.Name, pathIn(arguments), err)
		}
	}, true)
}

// Define defines a host's own tool. It returns a function that binds the tool to the value that
// serves its calls, such as a session. title describes a call to a person. The tool's schema is the
// schema of In, whose fields may have a description as their jsonschema tag. Its arguments are
// checked like those of the other tools, with one exception: a tool that is not read-only rejects
// unknown arguments, because without them it might do something else.
func Define[Host, In any](
	t Tool, title func(In) string, run func(Host, context.Context, In) (string, error),
) func(Host) Tool {
	return bind(t, title, func(
		h Host, ctx context.Context, in In, _ json.RawMessage,
	) (Result, error) {
		said, err := run(h, ctx, in)
		return Result{Text: said}, err
	}, t.Annotations.ReadOnly)
}

// maxReadArguments is the maximum size of the arguments of a tool that changes nothing, in bytes.
// Only the content of files is longer.
const maxReadArguments = 1 << 20

// bind returns a function that binds t to its host. The schema is made only once.
func bind[Host, In any](
	t Tool, title func(In) string,
	run func(Host, context.Context, In, json.RawMessage) (Result, error), ignoreUnknown bool,
) func(Host) Tool {
	input := newSchema[In]()
	t.InputSchema, t.schema = strictjson.Encode(input.Schema), input
	t.title = func(arguments json.RawMessage) string {
		var in In
		_ = json.Unmarshal(arguments, &in) // as far as they can be decoded
		return title(in)
	}
	return func(h Host) Tool {
		bound := t
		bound.call = func(ctx context.Context, arguments json.RawMessage) (Result, string, error) {
			if t.Annotations.ReadOnly && len(arguments) > maxReadArguments {
				return Result{}, "", &argumentError{tool: t.Name, problems: []string{
					fmt.Sprintf("the arguments have more than %d bytes", maxReadArguments)}}
			}
			var in In
			arguments = t.Canonical(arguments)
			note, err := input.decode(t.Name, arguments, &in)
			switch {
			case err != nil:
				return Result{}, "", err
			case note != "" && !ignoreUnknown:
				return Result{}, "", &argumentError{tool: t.Name, problems: []string{note}}
			}
			result, err := run(h, ctx, in, arguments)
			return result, note, err
		}
		return bound
	}
}

// pathIn returns the argument path, or the only path of several, or "".
func pathIn(arguments json.RawMessage) string {
	paths := Paths(arguments)
	if several := paths[2:]; len(several) == 1 {
		return several[0]
	}
	return paths[0]
}
