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
)

// What a tool of an MCP server does with its arguments is not known. So each text among them may be
// the path of a file, and what a member such as "command" has is a command: deny and ask rules
// match those. Any other text may contain either; an allow rule does not hold then.

// ToolCall returns the action of a call of a tool with arguments, a JSON object or nothing.
func (p Place) ToolCall(tool ServerTool, arguments json.RawMessage) Action {
	a := Action{Verb: Tool, Tool: tool}
	var input map[string]any
	if len(arguments) > 0 && json.Unmarshal(arguments, &input) != nil {
		a.Unclear = "the arguments of the tool are not an object"
	}
	p.arguments(&a, input)
	return a
}

// Carry adds to a command what else the params of a terminal/create have: variables, which programs
// may run or open, and members that are not known. A deny rule may be about a text among them.
func (p Place) Carry(a *Action, params json.RawMessage) error {
	var input map[string]any
	err := cmp.Or(strictjson.Refuse(strictjson.Check(params, nil)...), json.Unmarshal(params, &input))
	if err != nil {
		return err
	}
	for _, known := range []string{"sessionId", "command", "args", "cwd", "outputByteLimit"} {
		delete(input, known)
	}
	variables, _ := input["env"].([]any)
	for i, v := range variables {
		v, _ := v.(map[string]any)
		name, named := v["name"].(string)
		value, set := v["value"].(string)
		switch {
		case !named || !set:
		case os.Getenv(name) == value:
			variables[i] = nil
		default:
			variables[i] = map[string]any{"command": name + "= " + value}
		}
	}
	var rest Action
	for _, dir := range p.arguments(&rest, input) { // in which it may run
		there := p.mentions(dir, commandline.Read(a.Command.Line).Words(), commandline.Line{})
		rest.Hints.Files = append(rest.Hints.Files, there.files...)
	}
	for _, f := range rest.Files {
		a.Hints.Names = slices.Concat(a.Hints.Names, f.Names, f.Others)
	}
	if rest.Command.Line != "" {
		a.Hints.Texts = append(a.Hints.Texts, rest.Command.Line)
	}
	a.Hints.Texts = append(a.Hints.Texts, rest.Hints.Texts...)
	a.Hints.Reads = append(a.Hints.Reads, rest.Hints.Reads...)
	a.Hints.Words = rest.Hints.Words
	a.Hints.Files = slices.Concat(a.Hints.Files, rest.Hints.Files, rest.Files)
	a.Hints.More = a.Hints.More || rest.Hints.More
	return nil
}

// arguments fills in what the arguments of a tool may mean, and returns the folders that they name.
func (p Place) arguments(a *Action, input map[string]any) (folders []string) {
	var texts, lines []string
	strictjson.Walk("", input, func(name string, value any) {
		if strings.ContainsAny(name, "/.") { // and not a word that happens to be a folder
			texts = append(texts, name)
		}
		switch v := value.(type) {
		case string:
			texts = append(texts, v)
		case map[string]any:
			if line := lineOf(v); line != "" {
				lines = append(lines, line)
			}
		}
	})
	many := max(len(texts), len(lines)) > maxMentions
	lines = lines[:min(len(lines), maxMentions)]
	said := commandline.Read(lines...)
	words := said.Words()
	if len(lines) > 0 {
		a.Command.Line, a.Hints.Texts = lines[0], append(a.Hints.Texts, lines[1:]...)
	}
	size, some := 0, 0
	for _, s := range texts {
		if size += len(s); size > commandline.MaxLine {
			break
		}
		some++
	}
	a.Hints.Words = commandline.Read(texts[:some]...).Words()
	a.Hints.More = said.Built || size > commandline.MaxLine ||
		many || max(len(words), len(a.Hints.Words)) > maxMentions
	for _, root := range p.Workspace.Opened() {
		dir := root.Dir.String()
		named := p.mentions(dir, slices.Concat(texts, words), said)
		passed := p.mentions(dir, a.Hints.Words, commandline.Line{})
		a.Files = append(a.Files, named.files...)
		a.Hints.Reads = append(a.Hints.Reads, p.searched(said, named.dirs)...)
		a.Hints.Files = slices.Concat(a.Hints.Files, passed.files, named.vague)
		folders = append(folders, named.dirs[1:]...)
	}
	return folders
}

// lineOf returns the command line that an object has, "" if none of its members may hold a command.
func lineOf(object map[string]any) string {
	var words []string
	for _, name := range slices.SortedFunc(maps.Keys(object), programFirst) {
		if namesCommand(name) {
			words = append(words, wordsOf(object[name])...)
		}
	}
	return strings.Join(words, " ")
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
