package discovery

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Expansion is the text of a skill or command with the user's arguments filled in.
type Expansion struct {
	// TakesArguments reports whether the text has places for arguments.
	TakesArguments bool

	text string
	// parts that some agents replace by the output of a command or the content of a file; here
	// they stay text
	inert []string
}

// String returns the text.
func (e Expansion) String() string { return e.text }

// Note tells the user that the inert parts stay text. It is "" without such parts.
func (e Expansion) Note() string {
	if len(e.inert) == 0 {
		return ""
	}
	var shown []string
	for _, part := range e.inert[:min(len(e.inert), 3)] {
		shown = append(shown, text.Code(text.Printable(text.Truncate(part, 80))))
	}
	if more := len(e.inert) - len(shown); more > 0 {
		shown = append(shown, text.Count(more, "more", "more"))
	}
	return "No commands were run and no files were inserted for " + strings.Join(shown, ", ") +
		": they are passed on as text."
}

// maxExpansion is the maximum size of a text with its arguments, in bytes.
const maxExpansion = 2 << 20

// maxArgumentNames is the maximum number of names of arguments.
const maxArgumentNames = 100

// Expand returns the current text of a skill or command, with the arguments filled in.
func (c *Catalog) Expand(ctx context.Context, a Artifact, arguments string) (Expansion, error) {
	body, err := c.body(ctx, a)
	if err != nil {
		return Expansion{}, err
	}
	e := a.expand(body, arguments)
	if len(e.text) > maxExpansion {
		return Expansion{}, fmt.Errorf("with its arguments the text is longer than %d bytes: "+
			"use shorter arguments", maxExpansion)
	}
	return e, nil
}

var (
	argumentName  = text.Pattern(`^[A-Za-z_](?:[\w-]*\w)?$`)
	geminiPlace   = text.Pattern(`\{\{args\}\}`)
	geminiInert   = text.Pattern(`[!@]\{[^{}\n]+\}`)
	commandsToRun = text.Pattern("(?m)(?:^|[\\s(])(!`[^`\\n]+`)|^(```!)[ \\t]*$")
)

// placesOf returns the regular expression for the places in a text whose frontmatter names the
// arguments. Longer names come first. A backslash before a place escapes it, and $$ is not a place.
func placesOf(names []string) *regexp.Regexp {
	named := ""
	if len(names) > 0 {
		names = slices.SortedFunc(slices.Values(names),
			func(a, b string) int { return len(b) - len(a) })
		named = `|(` + strings.Join(names, "|") + `)\b`
	}
	return regexp.MustCompile(`\\?\$(?:\$|ARGUMENTS(?:\[(\d{1,4})\])?|(\d{1,4})` + named + `)`)
}

// readArguments reads the hint and the argument names in the frontmatter. Names are a list, or a
// text separated by spaces.
func (a *Artifact) readArguments(f frontmatter) {
	a.Hint = oneLine(f.values["argument-hint"].text, maxDescription)
	names := f.values["arguments"]
	if names.list == nil {
		inner, _ := cutBrackets(names.text)
		names.list = strings.FieldsFunc(inner,
			func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,"'`, r) })
	}
	if len(names.list) == 0 || len(names.list) > maxArgumentNames ||
		slices.ContainsFunc(names.list,
			func(name string) bool { return !argumentName().MatchString(name) }) {
		return
	}
	a.arguments = names.list
	if a.Hint == "" {
		a.Hint = oneLine("["+strings.Join(a.arguments, "] [")+"]", maxDescription)
	}
}

// expand puts the arguments into body, the text of a. $ARGUMENTS stands for everything that was
// typed. $ARGUMENTS[0], $ with the first name in the frontmatter, and $1 stand for the first word;
// if body contains $0, $0 stands for the first word, because some tools count from zero. Quotation
// marks keep words together. A place for a word that was not typed is left as it is. In a command
// of Gemini CLI {{args}} stands for everything. Nothing in the arguments is expanded. A text that
// becomes longer than maxExpansion is cut.
func (a Artifact) expand(body, arguments string) (e Expansion) {
	var place *regexp.Regexp
	if a.isTOML() {
		place, e.inert = geminiPlace(), geminiInert().FindAllString(body, -1)
	} else {
		place, e.inert = placesOf(a.arguments), inert(body)
	}
	words, _ := text.Words(arguments) // for an unclosed quote, the words so far
	places := place.FindAllStringSubmatchIndex(body, -1)
	first := 1 // the number of the first word after $
	if slices.ContainsFunc(places, func(m []int) bool { return body[m[0]:m[1]] == "$0" }) {
		first = 0
	}
	var b strings.Builder
	from := 0
	for _, m := range places {
		value, ok := "", false
		switch written := body[m[0]:m[1]]; {
		case written == "$ARGUMENTS", written == "{{args}}":
			value, ok, e.TakesArguments = arguments, true, true
		case written == "$$", written == `\$$`:
		case written[0] == '\\':
			value, ok = written[1:], true
		case m[2] >= 0:
			e.TakesArguments = true
			value, ok = word(words, body[m[2]:m[3]], 0)
		case m[4] >= 0:
			value, ok = word(words, body[m[4]:m[5]], first)
			e.TakesArguments = e.TakesArguments || ok
		default:
			if n := slices.Index(a.arguments, body[m[6]:m[7]]); n < len(words) {
				value, ok, e.TakesArguments = words[n], true, true
			}
		}
		if ok && b.Len() <= maxExpansion {
			b.WriteString(body[from:m[0]] + value)
			from = m[1]
		}
	}
	e.text = b.String() + body[from:]
	return e
}

// word returns the word with a number, if it was typed.
func word(words []string, number string, first int) (string, bool) {
	n, err := strconv.Atoi(number)
	if err != nil || n < first || n-first >= len(words) {
		return "", false
	}
	return words[n-first], true
}

// inert returns the parts of a Markdown text that look like commands to run, such as !`date`, or
// files to insert, such as @a.md.
func inert(body string) []string {
	var parts []string
	for _, m := range commandsToRun().FindAllStringSubmatch(body, -1) {
		parts = append(parts, m[1]+m[2])
	}
	for _, file := range importsOf(body) {
		file = strings.TrimRight(file, ".,;:!?)")
		last := file[strings.LastIndexByte(file, '/')+1:]
		if strings.Contains(last, ".") || strings.HasPrefix(file, "./") ||
			strings.HasPrefix(file, "../") || strings.HasPrefix(file, "$") {
			parts = append(parts, "@"+file)
		}
	}
	return parts
}

// ArgumentNames returns the names of the first words that are typed after a skill or command.
func (a Artifact) ArgumentNames() []string { return slices.Clone(a.arguments) }
