package permission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// The members of the inputs of tools whose values an action needs, or that change nothing about it.
// Others must be small: a number or a boolean.
var (
	dirMembers     = []string{"cwd", "workdir", "directory", "working_directory", "workingDirectory"}
	commandMembers = append([]string{"command", "commands", "cmd", "description", "explanation"},
		dirMembers...)
	pathMembers = []string{"path", "file", "files", "file_path", "filePath", "filepath", "fileName",
		"file_name", "abs_path", "absolute_path", "target_file", "notebook_path"}
	textMembers = []string{"content", "contents", "text", "file_text", "old_string", "new_string",
		"oldString", "newString", "old_str", "new_str", "oldText", "newText", "new_source",
		"insert_text", "diff", "filediff", "patch", "edits", "replacements", "before", "after",
		"description", "explanation", "instruction"}
	editMembers  = slices.Concat(pathMembers, textMembers)
	fetchMembers = []string{"url", "prompt", "format", "description"}
)

// rights are parts of the names of members that ask for more rights than a tool has.
var rights = []string{"permission", "sandbox", "escalat", "elevat", "privilege", "bypass", "unsafe",
	"danger", "trust", "approv"}

// offByFalse are members with one of these in their names that ask for nothing if they are false.
// Others may turn protection off then.
var offByFalse = []string{"dangerouslyDisableSandbox", "with_escalated_permissions"}

// checkRights returns an error if an input has a member that may give a tool more rights.
func checkRights(input map[string]any) (err error) {
	strictjson.Walk("", input, func(name string, value any) {
		lower := strings.ToLower(name)
		isOff := isEmpty(value) && (value != false || slices.Contains(offByFalse, name))
		if !isOff && slices.ContainsFunc(rights, func(part string) bool {
			return strings.Contains(lower, part)
		}) {
			err = fmt.Errorf("it asks for more rights with %q", text.Truncate(name, 50))
		}
	})
	return err
}

// checkMembers returns an error if an input has a member that is not listed and not harmless.
func checkMembers(input map[string]any, listed []string, isHarmless func(string, any) bool) error {
	for name, value := range input {
		if !isEmpty(value) && !slices.Contains(listed, name) && !isHarmless(name, value) {
			return fmt.Errorf("it is not known what %q means", text.Truncate(name, 50))
		}
	}
	return nil
}

// isEmpty reports whether a value is as good as absent.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// isSmall reports whether a value can name nothing.
func isSmall(_ string, value any) bool {
	switch value.(type) {
	case bool, float64:
		return true
	}
	return false
}

// isEditValue is isSmall, and accepts the name of what an editing tool does.
func isEditValue(name string, value any) bool {
	verbs := []any{"create", "write", "str_replace", "insert", "replace", "update", "edit"}
	return isSmall(name, value) ||
		(name == "command" || name == "mode" || name == "type") && slices.Contains(verbs, value)
}

// pathsIn returns the paths in an input, and the names in the headers of patches.
func pathsIn(input map[string]any) (paths, headers []string) {
	strictjson.Walk("", input, func(name string, value any) {
		switch s, _ := value.(string); {
		case s == "":
		case slices.Contains(pathMembers, name):
			paths = append(paths, s)
		case name == "diff" || name == "patch":
			files, named := filesOfPatch(s)
			paths, headers = append(paths, files...), append(headers, named...)
		}
	})
	return paths, headers
}

// filesOfPatch returns the paths in the headers of a patch for more than one file, as they are
// written. The file of a patch for one is named elsewhere in the request. named are all words in
// headers, as a shell would read them, also without the folder that git writes before a name.
func filesOfPatch(patch string) (files, named []string) {
	for line := range strings.Lines(patch) {
		line = strings.TrimRight(line, "\r\n")
		mark := header().FindString(line)
		name, _, _ := strings.Cut(line[len(mark):], "\t")
		if mark != "" && len(named) <= maxMentions {
			for _, word := range append(commandline.Read(name).Words(), name) {
				_, below, _ := strings.Cut(word, "/")
				named = append(named, word, below)
			}
		}
		if slices.Contains(changing, mark) {
			files = append(files, line[len(mark):])
		}
	}
	if len(files) < 2 && !strings.Contains(patch, "*** ") {
		return nil, named
	}
	return files, named
}

// header matches the beginning of a line of a patch with names of files, and changing are those
// with the name of one that is changed.
var (
	header   = text.Pattern(`^(\+\+\+ |--- |\*\*\* .*?: |Index: |diff |(rename|copy) (from|to) )`)
	changing = []string{"+++ ", "*** Add File: ", "*** Update File: ", "*** Delete File: ",
		"*** Move to: ", "rename to "}
)

// commandOf returns the command line in an input, and with an error what it has of one. A list has
// commands, or the words of one, which may start a shell with a line.
func commandOf(input map[string]any) (line string, err error) {
	var lines []string
	for _, name := range []string{"command", "cmd", "commands"} {
		list, isList := input[name].([]any)
		if !isList && input[name] != nil {
			list = []any{input[name]}
		}
		if len(list) > maxWords {
			list, err = list[:maxWords], errors.New("the command is too long")
		}
		var words []string
		for _, item := range list {
			word, ok := item.(string)
			if !ok {
				err = errors.New("the command is not a text")
			}
			words = append(words, word)
		}
		switch {
		case name == "commands" || len(words) < 2:
		case startsShell(words):
			words = words[2:]
		default:
			words = []string{strings.Join(wordsOf(list), " ")}
		}
		for _, word := range words {
			lines = append(lines, unwrap(word))
		}
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	switch {
	case err != nil:
	case len(lines) == 0:
		err = errors.New("the request has no command")
	case len(lines) > 1:
		err = errors.New("the request has more than one command")
	}
	return strings.Join(lines, "\n"), err
}

// startsShell reports whether a command is a shell for one line.
func startsShell(words []string) bool {
	return len(words) == 3 && slices.Contains([]string{"bash", "/bin/bash", "sh", "/bin/sh"}, words[0]) &&
		slices.Contains([]string{"-c", "-lc"}, words[1])
}

// unwrap returns the line for which a command line starts a shell, as Codex does, or the line
// itself.
func unwrap(line string) string {
	if words, err := commandline.Plain(line); err == nil && startsShell(words) {
		return words[2]
	}
	return line
}

// namesCommand reports whether a member called name of a tool's input may hold a command.
func namesCommand(name string) bool {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
	switch name {
	case "script", "argv", "args", "arguments", "code", "program", "run", "sh", "zsh", "eval":
		return true
	}
	return slices.ContainsFunc([]string{"command", "cmd", "shell", "exec", "bash"},
		func(part string) bool { return strings.Contains(name, part) })
}

// written returns the whole text that an input says a file will have, "" if it says none.
func written(input map[string]any) string {
	for _, name := range []string{"content", "contents", "file_text", "text"} {
		if s, ok := input[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}
