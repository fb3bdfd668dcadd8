package permission

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// What a tool of an MCP server does with its arguments is not known. So each text among them may be
// the path of a file, and what a member such as "command" has is a command: deny and ask rules
// match those. Any other text may contain either; an allow rule does not hold then.

// ToolCall returns the action of a call of a tool with arguments, a JSON object or nothing.
func ToolCall(w *workspace.Workspace, a Action, arguments json.RawMessage) Action {
	a.Verb = Tool
	var input map[string]any
	if len(arguments) > 0 && json.Unmarshal(arguments, &input) != nil {
		a.Unclear = "the arguments of the tool are not an object"
	}
	At(w).arguments(&a, input)
	return a
}

// Carry adds to a command what else the params of a terminal/create have: variables, which programs
// may run or open, and members that are not known. A deny rule may be about a text among them.
func Carry(w *workspace.Workspace, a *Action, params json.RawMessage) error {
	if err := strictjson.Refuse(strictjson.Check(params, nil)...); err != nil {
		return err
	}
	var input map[string]any
	var typed struct {
		Env []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"env"`
	}
	if err := json.Unmarshal(params, &input); err != nil {
		return err
	}
	for _, known := range []string{"sessionId", "command", "args", "cwd", "outputByteLimit"} {
		delete(input, known)
	}
	if strictjson.Decode(params, &typed) == nil {
		var commands []any
		for _, v := range typed.Env {
			if os.Getenv(v.Name) != v.Value {
				commands = append(commands, map[string]any{"command": v.Name + "= " + v.Value})
			}
		}
		input["env"] = commands
	}
	var rest Action
	p := At(w)
	for _, dir := range p.arguments(&rest, input) { // in which it may run
		there := p.mentions(dir, commandline.Read(a.Line).Words(), commandline.Line{})
		rest.Passed.Files = append(rest.Passed.Files, there.files...)
	}
	for _, f := range rest.Files {
		a.Names = slices.Concat(a.Names, f.Names, f.Others)
	}
	if rest.Line != "" {
		a.Texts = append(a.Texts, rest.Line)
	}
	a.Texts = append(a.Texts, rest.Texts...)
	a.Reads, a.Passed.Words = append(a.Reads, rest.Reads...), rest.Passed.Words
	a.Passed.Files = slices.Concat(a.Passed.Files, rest.Passed.Files, rest.Files)
	a.Passed.More = a.Passed.More || rest.Passed.More
	return nil
}

// arguments fills in what the arguments of a tool may mean, and returns the folders that they name.
func (p Place) arguments(a *Action, input map[string]any) (folders []string) {
	var t told
	t.read("", input)
	lines := t.lines[:min(len(t.lines), maxMentions)]
	said := commandline.Read(lines...)
	words := said.Words()
	if len(lines) > 0 {
		a.Line, a.Texts = lines[0], append(a.Texts, lines[1:]...)
	}
	size := 0
	some := slices.IndexFunc(t.texts, func(s string) bool {
		size += len(s)
		return size > commandline.MaxLine
	})
	if some < 0 {
		some = len(t.texts)
	}
	a.Passed.Words = commandline.Read(t.texts[:some]...).Words()
	a.Passed.More = said.Built || size > commandline.MaxLine ||
		max(len(t.texts), len(t.lines), len(words), len(a.Passed.Words)) > maxMentions
	for _, root := range p.Workspace.Opened() {
		dir := root.Dir.String()
		named := p.mentions(dir, slices.Concat(t.texts, words), said)
		passed := p.mentions(dir, a.Passed.Words, commandline.Line{})
		a.Files = append(a.Files, named.files...)
		a.Reads = append(a.Reads, p.searched(said, named.dirs)...)
		a.Passed.Files = slices.Concat(a.Passed.Files, passed.files, named.vague)
		folders = append(folders, named.dirs[1:]...)
	}
	return folders
}

// told are the texts in arguments, and the command lines among them.
type told struct{ texts, lines []string }

// read reads the value of a member.
func (t *told) read(name string, value any) {
	switch v := value.(type) {
	case string:
		t.texts = append(t.texts, v)
	case []any:
		for _, item := range v {
			t.read(name, item)
		}
	case map[string]any:
		var line []string
		for _, name := range slices.SortedFunc(maps.Keys(v), programFirst) {
			if strings.ContainsAny(name, "/.") { // and not a word that happens to be a folder
				t.texts = append(t.texts, name)
			}
			t.read(name, v[name])
			if namesCommand(name) {
				line = append(line, wordsOf(v[name])...)
			}
		}
		if len(line) > 0 {
			t.lines = append(t.lines, strings.Join(line, " "))
		}
	}
}

// programFirst orders the names of members: those of arguments come after that of their program.
func programFirst(a, b string) int {
	rank := func(name string) int {
		if strings.HasPrefix(strings.ToLower(name), "arg") {
			return 1
		}
		return 0
	}
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
}

// wordsOf returns the line of a command, or its words as a shell would have to be given them.
func wordsOf(value any) (words []string) {
	switch v := value.(type) {
	case string:
		words = append(words, v)
	case []any:
		for _, item := range v {
			if word, ok := item.(string); ok {
				words = append(words, shellWord(word))
			}
		}
	}
	return words
}
