package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
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
	set    *Set                                   // nil for a host's tool
	// run returns the result, and a note about the arguments, "" for none.
	run func(context.Context, call) (Result, string, error)
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

// Caller decides about a call and serves it. Each field may be nil, but for the Host of a tool that
// was made by [Define].
type Caller struct {
	// Permit decides about each change, by default the Permit of the set.
	Permit Permit
	// Made gets each change as it was made: an edit may have been made in a text that differs in
	// other lines from the one that was permitted.
	Made func(Change)
	// Check decides about each access.
	Check Check
	// Host serves the tools of [Define].
	Host any
}

// Check decides about an access to a file, as for [workspace.Workspace.Checked]. It may wait for a
// person. What visits many files, such as a search, does not call it: it leaves out what the
// workspace's own check refuses.
type Check func(ctx context.Context, a workspace.Access, before error) error

// call is a call of a tool.
type call struct {
	set       *Set            // of the tool
	arguments json.RawMessage // under the names that the tool has for them
	by        Caller
}

// service serves a call of a tool of a [Set].
type service struct {
	// checked is the workspace with the caller's check, which may ask a person. own has its own
	// check only: it is for what visits many files.
	checked, own *workspace.Workspace
	permit       Permit
	made         func(Change) // may be nil
	editor       Editor       // may be nil
	limits       limits
}

// maxReadArguments is the maximum size of the arguments of a tool that changes nothing, in bytes.
// Only the content of files is longer.
const maxReadArguments = 1 << 20

// Call calls the tool with a JSON object of arguments; empty arguments mean an empty object.
// Arguments may have the names that other agents have for them, such as file_path for path.
// Duplicate and invalid arguments are rejected, all in one error. Unknown arguments are ignored,
// and the text says so. Errors tell a model what to do instead; they wrap the errors of package
// workspace and of the [Permit]. If ctx ends, Call returns its cause.
func (t Tool) Call(ctx context.Context, arguments json.RawMessage, by Caller) (Result, error) {
	switch {
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case t.Annotations.ReadOnly && len(arguments) > maxReadArguments:
		return Result{}, &argumentError{tool: t.Name, problems: []string{
			fmt.Sprintf("the arguments have more than %d bytes", maxReadArguments)}}
	}
	result, note, err := t.run(ctx, call{t.set, t.Canonical(arguments), by})
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

// service returns what serves the call with the files of the set.
func (c call) service(ctx context.Context) *service {
	s := &service{checked: c.set.ws, own: c.set.ws, permit: c.by.Permit, made: c.by.Made,
		editor: c.set.editor, limits: c.set.limits}
	if s.permit == nil {
		s.permit = c.set.permit
	}
	if c.by.Check != nil && s.own != nil {
		s.checked = s.own.Checked(func(a workspace.Access, before error) error {
			return c.by.Check(ctx, a, before)
		})
	}
	return s
}

// define completes a tool of sets with the schema of In and the function that serves its calls.
// title describes a call to a person.
func define[In any](
	t Tool, title func(In) string, run func(*service, context.Context, In) (Result, error),
) Tool {
	return withInput(t, title, true, func(ctx context.Context, c call, in In) (Result, error) {
		s := c.service(ctx)
		if s.checked == nil {
			return Result{}, s.explain(t.Name, "", workspace.ErrClosed)
		}
		result, err := run(s, ctx, in)
		switch {
		case err == nil: // even if ctx has ended since
			return result, nil
		case ctx.Err() != nil:
			return Result{}, context.Cause(ctx)
		default:
			return Result{}, s.explain(t.Name, pathIn(c.arguments), err)
		}
	})
}

// Define defines a host's own tool, which the Host of its [Caller] serves, such as a session. title
// describes a call to a person. The tool's schema is the schema of In, whose fields may have a
// description as their jsonschema tag. Its arguments are checked like those of the other tools,
// with one exception: a tool that is not read-only rejects unknown arguments, because without them
// it might do something else.
func Define[Host, In any](
	t Tool, title func(In) string, run func(Host, context.Context, In) (string, error),
) Tool {
	ignores := t.Annotations.ReadOnly
	return withInput(t, title, ignores, func(ctx context.Context, c call, in In) (Result, error) {
		said, err := run(c.by.Host.(Host), ctx, in)
		return Result{Text: said}, err
	})
}

// withInput completes t with the schema of In and the function that serves its calls. ignores says
// whether unknown arguments are ignored.
func withInput[In any](
	t Tool, title func(In) string, ignores bool,
	run func(context.Context, call, In) (Result, error),
) Tool {
	input := newSchema[In]()
	t.InputSchema, t.schema = strictjson.Encode(input.Schema), input
	t.title = func(arguments json.RawMessage) string {
		var in In
		_ = json.Unmarshal(arguments, &in) // as far as they can be decoded
		return title(in)
	}
	t.run = func(ctx context.Context, c call) (Result, string, error) {
		var in In
		note, err := input.decode(t.Name, c.arguments, &in)
		switch {
		case err != nil:
			return Result{}, "", err
		case note != "" && !ignores:
			return Result{}, "", &argumentError{tool: t.Name, problems: []string{note}}
		}
		result, err := run(ctx, c, in)
		return result, note, err
	}
	return t
}

// pathIn returns the argument path, or the only path of several, or "".
func pathIn(arguments json.RawMessage) string {
	paths := Paths(arguments)
	if several := paths[2:]; len(several) == 1 {
		return several[0]
	}
	return paths[0]
}

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
