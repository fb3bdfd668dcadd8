package permission

import (
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
)

// outline is what a command line does besides what its words say. A shell makes words when the
// line runs, and a program takes them from another one or finds files by itself. What that will be
// cannot be told before.
type outline struct {
	// built means that some words are known only when the line runs.
	built bool
	// vague are patterns of names without a letter, which match too much to say anything.
	vague []string
	// entered are words for folders in which other words are looked up.
	entered []string
	// commands are the commands in the line.
	commands [][]commandline.Token
}

// maxCommands is the maximum number of commands of a line that are looked at.
const maxCommands = 100

// outlineOf reads a line, and texts in it that may be lines for another shell.
func outlineOf(line string) *outline {
	o := new(outline)
	o.read(line, maxNested)
	return o
}

func (o *outline) read(line string, depth int) {
	tokens, complete := commandline.Split(line)
	isOfWindows := runtime.GOOS == "windows" && strings.ContainsAny(line, "%^!")
	o.built = o.built || !complete || isOfWindows || isFed(tokens)
	tokens = append(tokens, commandline.Token{Kind: commandline.Operator, Text: "\n"})
	begin := 0
	for i, t := range tokens {
		isAfterWord := i > 0 && tokens[i-1].Kind != commandline.Operator
		switch {
		case t.Kind != commandline.Operator:
		case t.Text == "$(", t.Text == "`", t.Text == "(" && isAfterWord, // zsh has patterns with (
			t.Text == "<" && tokens[i+1] == t && tokens[i+2].Kind != commandline.Operator: // <<
			o.built = true
		case t.Text != "<" && t.Text != ">":
			o.readCommand(tokens[begin:i], line, depth)
			begin = i + 1
		}
	}
}

// readCommand reads a command, with its redirections.
func (o *outline) readCommand(command []commandline.Token, line string, depth int) {
	command = slices.DeleteFunc(slices.Clone(command), func(t commandline.Token) bool {
		return t.Kind == commandline.Operator
	})
	o.built = o.built || len(o.commands) == maxCommands || slices.ContainsFunc(command, isBuilt) ||
		findsNames(command)
	if o.built || len(command) == 0 {
		return
	}
	o.commands = append(o.commands, command)
	first := max(0, slices.IndexFunc(command, func(t commandline.Token) bool {
		return !strings.Contains(t.Text, "=") // which assigns a variable
	}))
	program := path.Base(command[first].Text)
	isGlob := func(t commandline.Token) bool {
		return t.Kind != commandline.Literal && strings.ContainsAny(t.Text, "*?[")
	}
	o.built = isGlob(command[first]) && (isPattern(program) && depth == maxNested ||
		strings.Contains(command[first].Text, "/"))
	for i, t := range command {
		if i > 0 && isOneOf(command[i-1].Text, "cd", "pushd", "-C", "--chdir") {
			o.entered = append(o.entered, t.Text)
		}
		if isGlob(t) && !isPattern(t.Text) && !isOneOf(program, "echo", "ls") {
			o.vague = append(o.vague, t.Text)
		}
		if isText(t.Text) && t.Text != line && !commandline.In("@texts", program) {
			if depth == 0 {
				o.built = true
				return
			}
			o.read(t.Text, depth-1)
		}
	}
}

func isOneOf(word string, list ...string) bool { return slices.Contains(list, word) }

// isText reports whether a word may be a line for a shell.
func isText(word string) bool { return len(fields(word)) > 1 || isChanged(word) }

// isChanged reports whether a shell puts something else in the place of a variable in a word. A
// dollar sign at the end stands for itself.
func isChanged(word string) bool { return strings.Contains(strings.TrimRight(word, "$"), "$") }

// isBuilt reports whether a shell makes something of a word that is not among the files that simple
// patterns match.
func isBuilt(t commandline.Token) bool {
	return t.Kind == commandline.Substituted ||
		t.Kind == commandline.Expanded && (isChanged(t.Text) || oddWord().MatchString(t.Text))
}

// oddWord matches the home of another user, the pattern **, braces with a range or a path, and
// classes of characters.
var oddWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^~[^/]|\*\*|\{[^{}]*(/|\.\.)|\[[^]]*\[[:.=]`)
})

// isFed reports whether a program takes names or commands from a pipe or a file.
func isFed(tokens []commandline.Token) bool {
	fed := slices.Contains(tokens, commandline.Token{Kind: commandline.Operator, Text: "<"})
	for _, t := range tokens {
		name := strings.TrimSuffix(path.Base(strings.ReplaceAll(t.Text, `\`, "/")), ".exe")
		switch {
		case t.Kind == commandline.Operator:
			fed = fed || t.Text == "|"
		case commandline.In("@fed", name), fed && commandline.In("@shells", name):
			return true
		}
	}
	return false
}

// findsNames reports whether a command gets names that are not its words, or is about a place that
// they do not name: by an option, or as a builtin of a shell.
func findsNames(command []commandline.Token) bool {
	for i, t := range command {
		name := path.Base(t.Text)
		rest := command[i+1:]
		has := func(pattern string) bool {
			return slices.ContainsFunc(rest, func(t commandline.Token) bool {
				return regexp.MustCompile(pattern).MatchString(t.Text)
			})
		}
		switch {
		case commandline.In("@rereaders", name), oddOption().MatchString(t.Text),
			name == "fd" && has(`^-[xX]`), strings.HasSuffix(name, "tar") && has(`^-?\w*T\w*$`),
			name == "cd" && (len(rest) == 0 || rest[0].Text == "-"):
			return true
		}
	}
	return false
}

// oddOption matches options that run a command for each file, that name a file with names, and that
// choose another folder for git, and variables for that and for the home of the user.
var oddOption = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^--?(exec|ok)|^--.*(file.*from|from.*file)|(?i:work.tree)|^HOME=`)
})
