package explore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// prompt is a parsed prompt.
type prompt struct {
	command string         // the name after a leading slash, or ""
	text    string         // what follows the command, or the whole text
	links   []link         // linked files
	refused []string       // why other links are not used
	ignored map[string]int // number of unused blocks by type
}

// readPrompt parses the params of a session/prompt.
func readPrompt(params []byte) (prompt, error) {
	var request struct {
		Prompt []struct{ Type, URI string } `json:"prompt"`
	}
	if err := json.Unmarshal(params, &request); err != nil {
		return prompt{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "prompt: %v", err)
	}
	typed, err := prompts.Typed(params)
	if err != nil {
		return prompt{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	p := prompt{ignored: make(map[string]int)}
	for _, b := range request.Prompt {
		switch b.Type {
		case "text":
		case "resource_link":
			if l, err := parseLink(b.URI); err != nil {
				p.refused = append(p.refused, fmt.Sprintf("The link %s was left out: %v.",
					text.Code(text.Truncate(b.URI, 200)), err))
			} else {
				p.links = append(p.links, l)
			}
		default:
			p.ignored[text.Truncate(b.Type, 50)]++
		}
	}
	var texts []string
	for _, b := range typed {
		texts = append(texts, text.TrimTyped(b.Text))
	}
	p.text = text.TrimTyped(strings.Join(texts, " "))
	if len(texts) > 0 && strings.HasPrefix(strings.TrimLeftFunc(texts[0], unicode.IsSpace), "/") {
		p.command, p.text = text.CutWord(strings.TrimLeftFunc(p.text, unicode.IsSpace)[1:])
		if p.command == "" {
			p.command, p.text = "help", ""
		}
	}
	return p, nil
}

// notes says which parts of the prompt are not used.
func (p prompt) notes() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(p.ignored)) {
		fmt.Fprintf(&b, "%s of type %s left out: only text and links to files are used.\n\n",
			text.Count(p.ignored[kind], "block", "blocks"), text.Code(kind))
	}
	for _, note := range p.refused {
		b.WriteString(note + "\n\n")
	}
	if p.text != "" && len(p.links) > 0 &&
		slices.Contains([]string{"", "find", "search"}, p.command) {
		b.WriteString(
			"Linked files do not narrow the search. To read them, send the links alone.\n\n")
	}
	return b.String()
}

// link is a file to read, with the lines that are wanted.
type link struct {
	path  string
	lines lines
}

// parseLink parses a file URI. Its fragment may name lines as editors do: #L3, #L3-L9, #L3:9.
// Whether the path lies in the roots is checked when the file is opened.
func parseLink(uri string) (link, error) {
	path, fragment, err := prompts.FilePath(uri)
	return link{path: path, lines: fragmentLines(fragment)}, err
}

// lines is a range of line numbers from 1, both included. The zero value is the whole file; last 0
// is its end.
type lines struct{ first, last int }

func (l lines) whole() bool { return l == lines{} }

func (l lines) String() string {
	switch {
	case l.whole():
		return ""
	case l.last == 0:
		return strconv.Itoa(l.first) + "-"
	case l.first == l.last:
		return strconv.Itoa(l.first)
	default:
		return strconv.Itoa(l.first) + "-" + strconv.Itoa(l.last)
	}
}

func fragmentLines(fragment string) lines {
	m := regexp.MustCompile(`^L(\d+)(?:[-:]L?(\d+))?$`).FindStringSubmatch(fragment)
	if m == nil {
		return lines{}
	}
	return newLines(lineNumber(m[1]), lineNumber(cmp.Or(m[2], m[1])))
}

// splitLines splits ":FIRST-LAST" off an argument. ":FIRST" is one line, ":FIRST-" extends to the
// end.
func splitLines(argument string) (path string, l lines, ok bool) {
	m := regexp.MustCompile(`(?s)^(.+):(\d+)(-(\d*))?$`).FindStringSubmatch(argument)
	if m == nil {
		return argument, lines{}, false
	}
	if m[3] == "" {
		m[4] = m[2]
	}
	return m[1], newLines(lineNumber(m[2]), lineNumber(m[4])), true
}

// newLines returns a range with its ends in order.
func newLines(first, last int) lines {
	first = max(first, 1)
	if last != 0 && last < first {
		first, last = last, first
	}
	return lines{first, last}
}

// lineNumber parses a number; 0 stands for no number. Numbers that are too large are clamped.
func lineNumber(digits string) int {
	if digits == "" {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return maxLines
	}
	return int(n)
}

const maxLines = 1<<31 - 1
