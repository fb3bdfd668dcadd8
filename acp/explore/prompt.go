package explore

import (
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

// link is a file to read, with the lines that are wanted: first is 0 for the whole file, and last
// for all that follow.
type link struct {
	path        string
	first, last int
}

// parseLink parses a file URI. Its fragment may name lines as editors do: #L3, #L3-L9, #L3:9.
// Whether the path lies in the roots is checked when the file is opened.
func parseLink(uri string) (link, error) {
	path, fragment, err := prompts.FilePath(uri)
	l, _ := withLines(path, fragment)
	return l, err
}

// splitLines splits ":FIRST-LAST" off an argument. ":FIRST" is one line, ":FIRST-" extends to the
// end.
func splitLines(argument string) (l link, ok bool) {
	colon := strings.LastIndexByte(argument, ':')
	if colon <= 0 {
		return link{path: argument}, false
	}
	l, ok = withLines(argument[:colon], argument[colon+1:])
	if !ok {
		l.path = argument
	}
	return l, ok
}

// withLines returns a link to the lines of a file, in ascending order.
func withLines(path, lines string) (l link, ok bool) {
	l.path = path
	m := regexp.MustCompile(`^L?(\d{1,9})(?:([-:])L?(\d{0,9}))?$`).FindStringSubmatch(lines)
	if m == nil {
		return l, false
	}
	l.first, _ = strconv.Atoi(m[1])
	l.first = max(l.first, 1)
	if m[2] == "" {
		l.last = l.first
	} else if l.last, _ = strconv.Atoi(m[3]); 0 < l.last && l.last < l.first {
		l.first, l.last = l.last, l.first
	}
	return l, true
}

// title describes reading the lines to a person.
func (l link) title() string {
	title := "Read " + text.Argument(l.path)
	switch {
	case l.first == 0:
		return title
	case l.last == l.first:
		return fmt.Sprintf("%s:%d", title, l.first)
	case l.last == 0:
		return fmt.Sprintf("%s:%d-", title, l.first)
	}
	return fmt.Sprintf("%s:%d-%d", title, l.first, l.last)
}

// arguments returns those of the tool read_file.
func (l link) arguments() map[string]any {
	a := map[string]any{"path": l.path}
	if l.first > 0 {
		a["offset"] = l.first
	}
	if l.last > 0 {
		a["limit"] = l.last - l.first + 1
	}
	return a
}
