package explore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// prompt is what the user asks.
type prompt struct {
	// command is the name behind a leading slash, "" if there is none.
	command string
	// text is what follows the command, or all of the text.
	text string
	// line is the rest of the command's own line, and body the lines below it as they were sent.
	line, body string
	// blocks is how many blocks there are, of any type.
	blocks int
	// links are the files that the user linked.
	links []link
	// refused are the links that no file can be read from, with the reason.
	refused []string
	// ignored counts the blocks of other types, by type.
	ignored map[string]int
}

// block is a content block, as far as it is read.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
	URI  string `json:"uri"`
}

// readPrompt reads the params of a session/prompt.
func readPrompt(params []byte) (prompt, error) {
	var request struct {
		Prompt []block `json:"prompt"`
	}
	if err := json.Unmarshal(params, &request); err != nil {
		return prompt{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "prompt: %v", err)
	}
	p := prompt{ignored: make(map[string]int), blocks: len(request.Prompt)}
	var texts []string
	for _, b := range request.Prompt {
		switch b.Type {
		case "text":
			if len(texts) == 0 {
				p.line, p.body, _ = strings.Cut(strings.TrimLeftFunc(b.Text, unicode.IsSpace), "\n")
			}
			texts = append(texts, strings.TrimSpace(b.Text))
		case "resource_link":
			if l, err := parseLink(b.URI); err != nil {
				p.refused = append(p.refused, fmt.Sprintf("The link %s was left out: %v.", code(clip(b.URI, 200)), err))
			} else {
				p.links = append(p.links, l)
			}
		default:
			p.ignored[clip(b.Type, 50)]++
		}
	}
	p.text = strings.TrimSpace(strings.Join(texts, " "))
	// The slash counts in the first block only, where the user began to write.
	if len(texts) > 0 && strings.HasPrefix(texts[0], "/") {
		name, rest := p.text[1:], ""
		if i := strings.IndexAny(name, " \t\r\n"); i >= 0 {
			name, rest = name[:i], strings.TrimSpace(name[i:])
		}
		p.command, p.text = name, rest
		p.line = strings.TrimSpace(strings.TrimPrefix(p.line, "/"+name))
		if name == "" {
			p.command, p.text = "help", ""
		}
	}
	return p, nil
}

// notes says what of the prompt is not used.
func (p prompt) notes() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(p.ignored)) {
		fmt.Fprintf(&b, "%s of type %s left out: only text and links to files are read here.\n\n",
			count(p.ignored[kind], "block", "blocks"), code(kind))
	}
	for _, note := range p.refused {
		b.WriteString(note + "\n\n")
	}
	if p.text != "" && len(p.links) > 0 && slices.Contains([]string{"", "find", "search"}, p.command) {
		b.WriteString("Linked files do not narrow the search. To read them, send the links alone.\n\n")
	}
	return b.String()
}
