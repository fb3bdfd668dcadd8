package permission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxFiles is the maximum number of files in a request that a rule allows. Of more, deny and ask
// rules look at maxMentions.
const maxFiles = 100

var errManyFiles = errors.New("the request names too many files")

// Action returns what a request says that the agent will do. announced is what its earlier updates
// said about the call.
func (r Request) Action(ctx context.Context, announced Call, p Place) Action {
	q := reader{ctx: ctx, place: p, agent: r.Agent, added: make(map[string]int)}
	q.Where.Root = p.Workspace.Root(0).Real.String()
	if err := q.read(r.Call, announced); err != nil {
		q.Unclear = err.Error()
	}
	if q.Unclear == "" {
		q.Unclear = r.unclearOptions(q.Verb)
	}
	return q.Action
}

// reader reads one request.
type reader struct {
	Action
	ctx   context.Context
	place Place
	agent string
	call  Call
	input map[string]any
	added map[string]int // where in Files the file of a name is
	// titled means that nothing but the title says what a command is.
	titled bool
}

func (q *reader) read(asked, announced Call) error {
	q.call = asked
	q.Hints.Texts = []string{cmp.Or(asked.Title, announced.Title)}
	if q.agent == "goose" && announced.Kind == "" {
		announced.Kind = gooseKind(announced.Meta)
	}
	kind, clash := kindOf(asked.Kind, announced.Kind)
	q.titled = len(asked.RawInput)+len(announced.RawInput) == 0
	input, err := joinInput(announced.RawInput, asked.RawInput)
	q.input = input
	q.call.Locations = append(slices.Clip(announced.Locations), asked.Locations...)
	q.call.Content = append(slices.Clip(announced.Content), asked.Content...)
	many := max(len(q.call.Locations), len(q.call.Content)) > maxFiles
	q.call.Locations = q.call.Locations[:min(len(q.call.Locations), maxMentions)]
	q.call.Content = q.call.Content[:min(len(q.call.Content), maxMentions)]
	reading := q.readKind(kind, announced.Meta)
	if q.Verb != Tool {
		err = cmp.Or(err, checkRights(q.input))
	}
	switch {
	case err != nil:
		return err
	case clash:
		return errors.New("the agent has announced another kind of action")
	case asked.ID == "":
		return errors.New("the request names no tool call")
	case many:
		return errManyFiles
	}
	return reading
}

// readKind reads a call of a kind.
func (q *reader) readKind(kind string, announced json.RawMessage) error {
	tool, err := toolOf(announced, q.call.Meta)
	switch {
	case kind == "switch_mode" || kind == "think":
		return errors.New("only you decide about the agent itself")
	case err != nil:
		return err
	case tool.server != "":
		q.readTool(tool)
		return nil
	case kind == "read" || kind == "search":
		return q.readReading()
	case kind == "edit":
		return q.readEdit()
	case kind == "delete" || kind == "move":
		return errors.Join(q.readEdit(), errors.New("files are deleted or moved"))
	case kind == "execute":
		return q.readCommand()
	case kind == "fetch":
		return q.readFetch()
	}
	q.addFiles()
	for _, value := range q.input {
		if s, ok := value.(string); ok {
			q.Hints.Texts = append(q.Hints.Texts, s)
		}
	}
	return errors.New("the agent does not say what kind of action it is")
}

// kindOf returns the kind of a call of which an announcement and a request tell the kind. "other"
// tells nothing: opencode says that when it asks to enter a directory for a call.
func kindOf(asked, announced string) (kind string, clash bool) {
	const other = "other"
	switch {
	case asked == "" || asked == other:
		return cmp.Or(announced, asked), false
	case announced == "" || announced == other:
		return asked, false
	}
	return asked, asked != announced
}

// joinInput returns the members of a tool's input that an announcement or a request has. It fails
// if they differ.
func joinInput(announced, asked json.RawMessage) (map[string]any, error) {
	all := make(map[string]any)
	var clash error
	for _, raw := range []json.RawMessage{announced, asked} {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var members map[string]any
		if v := strictjson.Check(raw, nil); len(v) > 0 {
			return all, strictjson.Refuse(v...)
		}
		if err := json.Unmarshal(raw, &members); err != nil {
			return all, errors.New("the input of the tool is not an object")
		}
		for name, value := range members {
			if before, known := all[name]; known && !reflect.DeepEqual(before, value) {
				clash = fmt.Errorf("the agent has announced another %q", name)
			}
			all[name] = value
		}
	}
	return all, clash
}

// readReading reads a call that reads or searches files. It does not trust the kind alone: agents
// derive it from what their models ask for, and some use the kind read for a shell command that
// only reads a file.
func (q *reader) readReading() (first error) {
	q.Verb = Read
	for _, l := range q.call.Locations {
		first = cmp.Or(first, q.addFile(l.Path, nil, nil))
	}
	for _, c := range q.call.Content {
		if c.Type != "content" { // a diff or a terminal
			first = cmp.Or(first, errors.New("it shows more than a read"))
		}
	}
	return cmp.Or(first, q.addPaths())
}

// addPaths adds the paths in the input of a reading tool to the action. It returns an error if one
// of them is not in the roots, or the input contains a command.
func (q *reader) addPaths() (first error) {
	strictjson.Walk("", q.input, func(name string, value any) {
		if namesCommand(name) {
			first = cmp.Or(first, errors.New("it may run a command"))
		}
		s, ok := value.(string)
		if !ok {
			return
		}
		if strings.HasPrefix(s, "~") || strings.Contains(s, "://") ||
			slices.Contains(strings.FieldsFunc(s, isSeparator), "..") {
			first = cmp.Or(first,
				errors.New("it may name something outside the folders of this session"))
		}
		if filepath.IsAbs(s) || strings.HasPrefix(s, "/") {
			first = cmp.Or(first, q.addFile(s, nil, nil))
		} else {
			first = cmp.Or(first, q.addName(s))
		}
	})
	return first
}

// addName adds a text that may be a pattern, or a path from the working directory. It is a file of
// the action if it leads to one.
func (q *reader) addName(name string) error {
	if len(q.Hints.Names) >= maxMentions {
		return errManyFiles
	}
	q.Hints.Names = append(q.Hints.Names, path.Clean(filepath.ToSlash(name)))
	there := commandline.Absolute(q.place.Workspace.Root(0).Dir.String(), name)
	_, err := q.place.Workspace.Stat(there)
	if err == nil || errors.As(err, new(*workspace.OutsideError)) {
		return q.addFile(there, nil, nil)
	}
	return nil
}

func isSeparator(r rune) bool { return r == '/' || r == '\\' }

// readEdit reads a call that writes files. At least one must be named by an absolute path.
func (q *reader) readEdit() error {
	q.Verb = Edit
	var first error
	for _, c := range q.call.Content {
		var err error
		switch c.Type {
		case "diff":
			err = q.addFile(c.Path, &c.New, c.Old)
		case "content":
		default:
			err = errors.New("it shows more than an edit")
		}
		first = cmp.Or(first, err)
	}
	return cmp.Or(first, q.addFiles(), checkMembers(q.input, editMembers, isEditValue))
}

// addFiles adds the files of the locations and of the input's members that name files.
func (q *reader) addFiles() (first error) {
	text := written(q.input)
	for _, l := range q.call.Locations {
		first = cmp.Or(first, q.addFile(l.Path, &text, nil))
	}
	paths, headers := pathsIn(q.input)
	for _, path := range paths {
		first = cmp.Or(first, q.addFile(path, &text, nil))
	}
	if len(headers) > maxMentions {
		first = cmp.Or(first, errManyFiles)
	}
	for _, name := range headers[:min(len(headers), maxMentions)] {
		f := q.place.named(name, q.Where.Root)
		q.place.look(&f)
		q.Hints.Names = slices.Concat(q.Hints.Names, f.Names, f.Others)
		q.Hints.Files = append(q.Hints.Files, f)
	}
	return first
}

// addFile adds a file of the action, once. Many files are known by name only.
func (q *reader) addFile(name string, text, old *string) error {
	i, added := q.added[name]
	switch {
	case added: // but this may be another change of it
		if text != nil && isScript(*text) || old != nil && isScript(*old) {
			q.Files[i].Risk = cmp.Or(q.Files[i].Risk, isProgram)
		}
		return nil
	case len(q.Files) >= maxMentions:
		return errManyFiles
	}
	q.added[name] = len(q.Files)
	if len(q.Files) >= maxFiles {
		q.Files = append(q.Files, q.place.named(name, ""))
		return errManyFiles
	}
	f, err := q.place.file(q.ctx, name, text, old)
	q.Files = append(q.Files, f)
	if err != nil {
		return fmt.Errorf("%s is not a file in the folders of this session", name)
	}
	return nil
}

// readCommand reads a call that runs a command.
func (q *reader) readCommand() error {
	q.Verb = Run
	line, err := commandOf(q.input)
	if q.titled && q.agent == "gemini" { // whose requests have nothing else
		line, err = q.Hints.Texts[0], nil
	}
	dir := ""
	for _, name := range dirMembers {
		if told, _ := q.input[name].(string); told != "" && (dir == "" || dir == told) {
			dir = told
		} else if told != "" {
			err = cmp.Or(err, errors.New("the agent names two directories"))
		}
	}
	if dir != "" {
		dir = commandline.Absolute(q.place.Workspace.Root(0).Dir.String(), dir)
	}
	before := q.Action
	q.Action, _ = q.place.Command(line, dir)
	q.Hints.Texts = before.Hints.Texts
	q.Where.Root = cmp.Or(q.Where.Root, before.Where.Root)
	for _, l := range q.call.Locations[:min(len(q.call.Locations), maxFiles)] {
		if _, failed := q.place.file(q.ctx, l.Path, nil, nil); failed != nil {
			err = cmp.Or(err, errors.New("it does not run in the folders of this session"))
		}
	}
	for _, c := range q.call.Content {
		if c.Type != "content" && c.Type != "terminal" {
			err = cmp.Or(err, errors.New("it shows more than a command"))
		}
	}
	return errors.Join(err, checkMembers(q.input, commandMembers, isSmall))
}

// readFetch reads a call that gets something from a host.
func (q *reader) readFetch() error {
	q.Verb = Fetch
	address, _ := q.input["url"].(string)
	q.Hints.Texts = append(q.Hints.Texts, address)
	host, err := hostOf(address)
	q.Host = host
	return errors.Join(err, checkMembers(q.input, fetchMembers, isSmall))
}

// readTool reads a call of a tool of an MCP server.
func (q *reader) readTool(t toolName) {
	q.Verb, q.Tool.Server, q.Tool.Name = Tool, t.server, t.tool
	q.place.arguments(&q.Action, q.input)
	if slices.Contains(clientsSources, t.source) {
		q.Tool.Config = q.place.Server(t.server)
	}
	// Otherwise a file in a folder may have chosen the name.
	q.Tool.Found = !slices.Contains(usersSources, t.source) && (t.source != "" || q.Tool.Config == "")
}
