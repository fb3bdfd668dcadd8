package permission

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/permission/commandline"
)

// outline says what a command line does besides what its words say. A shell makes words when the
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
	o.built = o.built || !complete || runtime.GOOS == "windows" && strings.ContainsAny(line, "%^!")
	tokens = append(tokens, commandline.Token{Kind: commandline.Operator, Text: "\n"})
	fed := slices.Contains(tokens, commandline.Token{Kind: commandline.Operator, Text: "<"})
	begin := 0
	for i, t := range tokens {
		program := commandline.Program(t.Text)
		isAfterWord := i > 0 && tokens[i-1].Kind != commandline.Operator
		switch {
		case t.Kind != commandline.Operator:
			o.built = o.built || commandline.In("@fed", program) ||
				fed && commandline.In("@shells", program)
		case t.Text == "$(", t.Text == "`", t.Text == "(" && isAfterWord, // zsh has patterns with (
			t.Text == "<" && tokens[i+1] == t && tokens[i+2].Kind != commandline.Operator: // <<
			o.built = true
		case t.Text != "<" && t.Text != ">":
			fed = fed || t.Text == "|"
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
	var words []string
	for _, t := range command {
		o.built = o.built || isBuilt(t)
		words = append(words, t.Text)
	}
	o.built = o.built || len(o.commands) == maxCommands ||
		oddCommand().MatchString(strings.Join(words, "\n"))
	if o.built || len(command) == 0 {
		return
	}
	o.commands = append(o.commands, command)
	first := command[max(0, slices.IndexFunc(words, func(word string) bool {
		return !strings.Contains(word, "=") // which assigns a variable
	}))]
	program := commandline.Program(first.Text)
	o.built = isGlob(first) && (isPattern(program) && depth == maxNested || program != first.Text)
	for i, t := range command {
		place, isPlace := strings.CutPrefix(t.Text, "--chdir=")
		if isPlace || i > 0 && (words[i-1] == "-C" || words[i-1] == "--chdir") ||
			slices.Contains(words[:i], "cd") || slices.Contains(words[:i], "pushd") {
			o.entered = append(o.entered, place)
		}
		if isGlob(t) && !isPattern(t.Text) && program != "echo" && program != "ls" {
			o.vague = append(o.vague, t.Text)
		}
		isText := len(fields(t.Text)) > 1 || isChanged(t.Text)
		switch {
		case !isText || t.Text == line || commandline.In("@texts", program):
		case depth == 0:
			o.built = true
		default:
			o.read(t.Text, depth-1)
		}
	}
}

// isGlob reports whether a shell takes a word for a pattern of names.
func isGlob(t commandline.Token) bool {
	return t.Kind != commandline.Literal && strings.ContainsAny(t.Text, "*?[")
}

// isChanged reports whether a shell puts something else in the place of a variable in a word. A
// dollar sign at the end stands for itself, and $? for a number.
func isChanged(word string) bool { return strings.Contains(strings.TrimRight(word, "$?#!"), "$") }

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

// oddCommand matches a command, of which each word is a line, that gets names besides its words, or
// is about a place that they do not name.
var oddCommand = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)` + strings.Join([]string{
		`^--?(exec|ok)`, `(^|/)fd\n(.*\n)*-[xX]`, // run a command for each file
		`^--.*(file.*from|from.*file)`, `(^|/)(bsd)?tar\n(.*\n)*-?\w*T\w*$`, // read names
		`(?i:work.tree)`, `^HOME=`, `^cd(\n-$|\z)`, // choose another place
		`^(.*/)?(alias|emulate|eval|setopt|shopt|watch)$`, // change what words mean
		`(?i)dot_?glob|glob_?dots|^globignore=`,           // change what patterns match
	}, "|"))
})
