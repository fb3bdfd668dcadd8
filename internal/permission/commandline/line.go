package commandline

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Line says what command lines do, as far as that can be told before a shell runs them. A shell
// makes words when a line runs, and a program takes them from another one or finds files by itself.
type Line struct {
	// Commands are the words of the commands that stand in the lines, without quotes.
	Commands [][]string
	// Any are the words of the commands that the lines may run: those that stand in them, and those
	// that are the text of a word. Nothing is expanded: the lines are also read as if what a shell
	// expands were empty. Words into which a shell writes are those of a command ">". Each command
	// is also read as the parts of its words, and with the words of the commands in its texts, which
	// may use later words: in sh -c 'touch $0' x the file is x.
	Any [][]string
	// Built means that some words are known only when the lines run.
	Built bool
	// Vague are patterns of names without a letter, which match too much to say anything.
	Vague []string
	// Entered are words for folders in which other words are looked up.
	Entered []string

	certain [][]token // the commands that a shell surely reads so
}

const (
	// maxNested is how deep the text of a command is looked for in words of others, such as that of
	// sh -c.
	maxNested = 3
	// maxCommands is the maximum number of commands that are looked at for [Line.MayRead].
	maxCommands = 100
)

// Read reads lines that run one after the other. Of a line that is too long it reads the beginning.
func Read(lines ...string) (l Line) {
	for _, line := range lines {
		l.Built = l.Built || len(line) > MaxLine ||
			runtime.GOOS == "windows" && strings.ContainsAny(line, "%^!")
		line = line[:min(len(line), MaxLine)]
		decoded := escape().ReplaceAllStringFunc(line, func(code string) string {
			base, digits := 8, code[1:]
			if strings.ContainsAny(digits[:1], "xuU") {
				base, digits = 16, digits[1:]
			}
			n, _ := strconv.ParseUint(digits, base, 32)
			return string(rune(n))
		})
		emptied := expansion().ReplaceAllString(decoded, "")
		for i, as := range slices.Compact([]string{line, decoded, emptied}) {
			l.read(as, maxNested, i == 0)
		}
	}
	return l
}

// Words returns the words of all commands, each once: all files that the lines name are among them.
func (l Line) Words() (words []string) {
	seen := make(map[string]bool)
	for _, word := range slices.Concat(l.Any...) {
		if !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// read reads a line, and texts in it that may be lines for another shell. It returns all words as
// they are read last. Without certain a shell need not read it so.
func (l *Line) read(line string, depth int, certain bool) (words []string) {
	text := strings.ReplaceAll(line, "\r\n", "\n")
	tokens, complete := split(strings.ReplaceAll(text, "\r", "\n"))
	tokens = append(tokens, token{kind: operator, text: "\n"})
	l.Built = l.Built || certain && (!complete || strings.Contains(text, "\r"))
	fed := slices.Contains(tokens, token{kind: operator, text: "<"})
	var command []token
	written := []string{">"}
	writes := false // into the next word
	for i, t := range tokens {
		program := Program(t.text)
		switch {
		case t.kind != operator:
			l.Built = l.Built || certain &&
				(In("@fed", program) || fed && In("@shells", program))
			if command = append(command, t); writes {
				written = append(written, t.text)
			}
			writes = false
			continue
		case t.text == "$(", t.text == "`",
			// These are a pattern of zsh, and <<.
			t.text == "(" && i > 0 && tokens[i-1].kind != operator,
			t.text == "<" && tokens[i+1] == t && tokens[i+2].kind != operator:
			l.Built = l.Built || certain
		}
		writes = t.text == ">" || writes && (t.text == "|" || t.text == "&")
		if t.text != "<" && t.text != ">" && len(command) > 0 {
			words = append(words, l.readCommand(command, line, depth, certain)...)
			command = nil
		}
		fed = fed || t.text == "|"
	}
	if len(written) > 1 {
		l.Any = append(l.Any, written)
	}
	return words
}

// readCommand reads a command of a line, with its redirections.
func (l *Line) readCommand(command []token, line string, depth int, certain bool) []string {
	var words, parts, joined []string
	for _, t := range command {
		words = append(words, t.text)
	}
	if certain && depth == maxNested {
		l.Commands = append(l.Commands, words)
	}
	certain = certain && l.look(command, words, depth)
	for _, word := range words {
		inner := fields(word)
		parts = append(parts, inner...)
		if len(word) > 2 && word[0] == '-' && word[1] != '-' {
			parts = append(parts, word[2:]) // the value of an option, such as -g.env
		}
		isText := len(inner) > 1 || isChanged(word) || strings.Contains(word, ">")
		if isText && word != line && depth > 0 {
			joined = append(joined, l.read(word, depth-1, certain)...)
			continue
		}
		l.Built = l.Built || isText && word != line && certain
		joined = append(joined, word)
	}
	l.Any = append(l.Any, words, parts, joined)
	return joined
}

// look looks at what a command does besides what its words say. texts means that its words may be
// lines for another shell.
func (l *Line) look(command []token, words []string, depth int) (texts bool) {
	l.Built = l.Built || slices.ContainsFunc(command, isBuilt) || len(l.certain) == maxCommands ||
		oddCommand().MatchString(strings.Join(words, "\n"))
	if l.Built {
		return false
	}
	l.certain = append(l.certain, command)
	first := command[max(0, slices.IndexFunc(words, func(word string) bool {
		return !strings.Contains(word, "=") // which assigns a variable
	}))]
	program := Program(first.text)
	l.Built = isGlob(first) && (IsPattern(program) && depth == maxNested || program != first.text)
	for i, t := range command {
		place, isPlace := strings.CutPrefix(t.text, "--chdir=")
		if isPlace || i > 0 && (words[i-1] == "-C" || words[i-1] == "--chdir") ||
			slices.Contains(words[:i], "cd") || slices.Contains(words[:i], "pushd") {
			l.Entered = append(l.Entered, place)
		}
		if isGlob(t) && !IsPattern(t.text) && program != "echo" && program != "ls" {
			l.Vague = append(l.Vague, t.text)
		}
	}
	return !In("@texts", program)
}

// fields returns what could be words of a command in a text.
func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("'\"`\\$&|;<>(){},=:@", r)
	})
}

// IsPattern reports whether a shell may take a word for a pattern of names. One without a letter
// matches too much to say anything.
func IsPattern(word string) bool {
	return strings.ContainsAny(word, "*?[") && strings.ContainsFunc(word, unicode.IsLetter)
}

// isGlob reports whether a shell takes a word for a pattern of names.
func isGlob(t token) bool {
	return t.kind != literal && strings.ContainsAny(t.text, "*?[")
}

// isChanged reports whether a shell puts something else in the place of a variable in a word. A
// dollar sign at the end stands for itself, and $? for a number.
func isChanged(word string) bool { return strings.Contains(strings.TrimRight(word, "$?#!"), "$") }

// isBuilt reports whether a shell makes something of a word that is not among the files that simple
// patterns match.
func isBuilt(t token) bool {
	return t.kind == substituted ||
		t.kind == expanded && (isChanged(t.text) || oddWord().MatchString(t.text))
}

// oddWord matches the home of another user, the pattern **, braces with a range or a path, and
// classes of characters.
var oddWord = text.Pattern(`^~[^/]|\*\*|\{[^{}]*(/|\.\.)|\[[^]]*\[[:.=]`)

// oddCommand matches a command, of which each word is a line, that gets names besides its words, or
// is about a place that they do not name.
var oddCommand = text.Pattern(`(?m)` + strings.Join([]string{
	`^--?(exec|ok)`, `(^|/)fd\n(.*\n)*-[xX]`, // run a command for each file
	`^--.*(file.*from|from.*file)`, `(^|/)(bsd)?tar\n(.*\n)*-?\w*T\w*$`, // read names
	`(?i:work.tree)`, `^HOME=`, `^cd(\n-$|\z)`, // choose another place
	`^(.*/)?(alias|emulate|eval|setopt|shopt|watch)$`, // change what words mean
	`(?i)dot_?glob|glob_?dots|^globignore=`,           // change what patterns match
}, "|"))

// escape matches a character that is written as a number, and expansion what may be empty when a
// shell has expanded it.
var (
	escape    = text.Pattern(`\\(?:x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3})`)
	expansion = text.Pattern("\\$\\(\\s*\\)|``|\\$\\{[^{}]*\\}|\\$[A-Za-z_][A-Za-z0-9_]*|\\$[-@*#?!$0-9]")
)
