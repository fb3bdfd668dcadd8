package permission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Call has what an agent says about a tool call, in an update or in a session/request_permission.
type Call struct {
	ID        string `json:"toolCallId"`
	Title     string `json:"title"`
	Kind      string `json:"kind"`
	Status    string `json:"status"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Content  []Content       `json:"content"`
	RawInput json.RawMessage `json:"rawInput"`
	Meta     json.RawMessage `json:"_meta"`
}

// Content is a part of what a tool call shows. A diff has a path and texts.
type Content struct {
	Type string  `json:"type"`
	Path string  `json:"path"`
	Old  *string `json:"oldText"`
	New  string  `json:"newText"`
}

// With returns what is known of a call after an update that says other.
func (c Call) With(other Call) Call {
	c.ID = cmp.Or(other.ID, c.ID)
	c.Title, c.Kind = cmp.Or(other.Title, c.Title), cmp.Or(other.Kind, c.Kind)
	if other.Locations != nil {
		c.Locations = other.Locations
	}
	if other.Content != nil {
		c.Content = other.Content
	}
	if other.RawInput != nil {
		c.RawInput = other.RawInput
	}
	if other.Meta != nil {
		c.Meta = other.Meta
	}
	return c
}

// Option is an answer that a request offers. It is encoded as it was read.
type Option struct {
	Kind string          `json:"kind"`
	Name string          `json:"name"`
	ID   string          `json:"optionId"`
	Meta json.RawMessage `json:"_meta,omitempty"`

	raw json.RawMessage // nil if it was not read
}

type plainOption Option

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Option) UnmarshalJSON(raw []byte) error {
	o.raw = slices.Clone(raw)
	return json.Unmarshal(raw, (*plainOption)(o))
}

// MarshalJSON implements [json.Marshaler].
func (o Option) MarshalJSON() ([]byte, error) {
	if o.raw != nil {
		return o.raw, nil
	}
	return strictjson.Encode(plainOption(o)), nil
}

// The kinds of options.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// AlwaysID is the id of acp-agent's own "always".
const AlwaysID = "allow-always"

// Request is a session/request_permission of an agent.
type Request struct {
	Call    Call     `json:"toolCall"`
	Options []Option `json:"options"`
	// Agent is the name of the agent's profile, "" if it has none.
	Agent string `json:"-"`
}

var requestShape = &strictjson.Shape{Fields: map[string]*strictjson.Shape{
	"toolCall": {Fields: map[string]*strictjson.Shape{
		"locations": {Items: named("path")}, "content": {Items: named("type", "path", "oldText", "newText")},
		"toolCallId": nil, "title": nil, "kind": nil, "status": nil, "rawInput": nil, "_meta": nil,
	}},
	"options": {Items: named("optionId", "kind", "name")},
}}

func named(names ...string) *strictjson.Shape {
	fields := make(map[string]*strictjson.Shape)
	for _, name := range names {
		fields[name] = nil
	}
	return &strictjson.Shape{Fields: fields}
}

// ParseRequest reads the params of a session/request_permission. The error is not nil if they could
// be read in several ways; the request is one of them then.
func ParseRequest(params json.RawMessage) (r Request, err error) {
	err = json.Unmarshal(params, &r)
	return r, cmp.Or(strictjson.Refuse(strictjson.Check(params, requestShape)...), err)
}

// Once returns the option that allows the call once. ok is false if there is not exactly one, or
// another option has the same id.
func (r Request) Once() (once Option, ok bool) {
	i := slices.IndexFunc(r.Options, func(o Option) bool { return o.Kind == AllowOnce })
	if i < 0 {
		return once, false
	}
	for j, o := range r.Options {
		if j != i && (o.Kind == AllowOnce || o.ID == r.Options[i].ID) {
			return once, false
		}
	}
	return r.Options[i], r.Options[i].ID != ""
}

// Refusal returns an option that refuses the call.
func (r Request) Refusal() (refusal Option, ok bool) {
	for _, kind := range []string{RejectOnce, RejectAlways} {
		for _, o := range r.Options {
			if o.Kind == kind {
				return o, o.ID != ""
			}
		}
	}
	return refusal, false
}

// OnlyOnce returns the options to allow and to refuse once. Agents would follow an "always" even
// where a rule does not stop the question. ok is false if not both remain.
func (r Request) OnlyOnce() (options []Option, ok bool) {
	once, allows := r.Once()
	refusal, refuses := r.Refusal()
	return []Option{once, refusal}, allows && refuses
}

// Offering returns the options of a request about an action. A rule replaces the agent's "always",
// and there is at most one option of each kind, because some clients keep only one.
func (r Request) Offering(rule Rule, a Action) (options []Option, ok bool) {
	once, allows := r.Once()
	always := Option{ID: AlwaysID, Kind: AllowAlways, Name: rule.Label(a), Meta: strictjson.Encode(
		map[string]any{"acp-agent": map[string]string{"rule": rule.String()}})}
	options = []Option{once, always}
	refusal, refuses := r.Refusal()
	if refuses {
		options = append(options, refusal)
	}
	return options, allows && once.ID != AlwaysID && refusal.ID != AlwaysID
}

// Chosen returns the option that a client's answer chooses.
func (r Request) Chosen(result json.RawMessage) (o Option, ok bool) {
	var answer struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			ID      string `json:"optionId"`
		} `json:"outcome"`
	}
	if strictjson.Decode(result, &answer) != nil || answer.Outcome.Outcome != "selected" {
		return o, false
	}
	i := slices.IndexFunc(r.Options, func(o Option) bool { return o.ID == answer.Outcome.ID })
	if i < 0 {
		return o, false
	}
	return r.Options[i], true
}

// unclearOptions says why the options show that the agent asks about more than one action, or that
// it has a reason to ask again.
func (r Request) unclearOptions(verb Verb) string {
	_, once := r.Once()
	switch {
	case !once:
		return "the agent offers not exactly one way to allow it once"
	case strings.HasPrefix(r.Options[0].Kind, "reject"):
		return "the agent suggests refusing it"
	case verb != Read && !slices.ContainsFunc(r.Options, func(o Option) bool {
		return o.Kind == AllowAlways
	}):
		return "the agent does not offer to allow it permanently"
	}
	return ""
}

// maxFiles is the maximum number of files in a request that a rule allows. Of more, deny and ask
// rules look at maxMentions.
const maxFiles = 100

var errManyFiles = errors.New("the request names too many files")

// Action returns what a request says that the agent will do. announced is what its earlier updates
// said about the call.
func (r Request) Action(ctx context.Context, announced Call, p Place) Action {
	q := reader{ctx: ctx, place: p, agent: r.Agent, added: make(map[string]bool)}
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
	added map[string]bool // the names of files
	// titled means that nothing but the title says what a command is.
	titled bool
}

func (q *reader) read(asked, announced Call) error {
	q.call = announced.With(asked)
	q.Hints.Texts = []string{q.call.Title}
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
	tool, isTool, err := toolOf(q.agent, announced, q.call.Meta)
	switch {
	case kind == "switch_mode" || kind == "think":
		return errors.New("only you decide about the agent itself")
	case err != nil:
		return err
	case isTool:
		return q.readTool(tool)
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
	switch {
	case q.added[name]: // but this may be another change of it
		if text != nil && isScript(*text) || old != nil && isScript(*old) {
			i := slices.IndexFunc(q.Files, func(f File) bool { return f.Path == name })
			q.Files[i].Risk = cmp.Or(q.Files[i].Risk, isProgram)
		}
		return nil
	case len(q.Files) >= maxMentions:
		return errManyFiles
	}
	q.added[name] = true
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
		line, err = q.call.Title, nil
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
	command, _, placed := q.place.command(line, dir)
	q.Action, q.Hints.Texts = command, before.Hints.Texts
	q.Where.Root = cmp.Or(q.Where.Root, before.Where.Root)
	for _, l := range q.call.Locations[:min(len(q.call.Locations), maxFiles)] {
		if _, failed := q.place.file(q.ctx, l.Path, nil, nil); failed != nil {
			placed = cmp.Or(placed, failed)
		}
	}
	for _, c := range q.call.Content {
		if c.Type != "content" && c.Type != "terminal" {
			err = cmp.Or(err, errors.New("it shows more than a command"))
		}
	}
	if placed != nil {
		placed = errors.New("it does not run in the folders of this session")
	}
	return errors.Join(err, placed, checkMembers(q.input, commandMembers, isSmall))
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
