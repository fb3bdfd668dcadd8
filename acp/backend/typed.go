package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/text"
)

// TypedBlock is a text block that the user typed.
type TypedBlock struct {
	Index int // in the prompt
	// Text is the text of the block, without marks that an editor puts around it.
	Text string
}

// TypedText returns the text blocks in the params of a prompt that the user typed. It leaves out
// those in which an editor put rules, files or selections, unless nothing else would be left. A
// slash command is at the beginning of the first block returned: if several blocks call a command,
// that is the last of them, and those before it are left out too.
func TypedText(params Raw) ([]TypedBlock, error) {
	var p struct{ Prompt []textBlock }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("cannot read the prompt: %w", err)
	}
	var all, typed []TypedBlock
	for i, b := range p.Prompt {
		if b.Type != "text" {
			continue
		}
		all = append(all, TypedBlock{i, b.Text})
		if !b.fromEditor() {
			typed = append(typed, TypedBlock{i, b.Text})
		}
	}
	if len(typed) == 0 {
		return unwrapped(all), nil
	}
	for i := len(typed) - 1; i > 0; i-- {
		if laterCommand().MatchString(typed[i].Text) {
			return typed[i:], nil
		}
	}
	return typed, nil
}

// SlashCall is a call of a slash command.
type SlashCall struct {
	// Name is the name of the command, "" if there is no call.
	Name string
	// Arguments are what the user typed after the name.
	Arguments string
	// Block is the block with the name.
	Block TypedBlock
}

// ParseSlashCall returns the call in the params of a prompt, if there is one.
func ParseSlashCall(params Raw) SlashCall {
	typed, err := TypedText(params)
	if err != nil || len(typed) == 0 {
		return SlashCall{}
	}
	line, ok := strings.CutPrefix(strings.TrimSpace(typed[0].Text), "/")
	if !ok {
		return SlashCall{}
	}
	for _, b := range typed[1:] {
		line += " " + strings.TrimSpace(b.Text)
	}
	name, arguments := text.CutWord(line)
	return SlashCall{Name: name, Arguments: arguments, Block: typed[0]}
}

// laterCommand matches a block that calls a slash command although the user may have typed another
// block before it. A path or a comment is not a command, nor is what continues a line after a
// mention.
var laterCommand = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:\s*\n)?/[\pL\pN_][^\s/]*(?:\s|$)`) })

// unwrapped returns blocks, or if avante sent them, the newest message among them, without its
// mark. Avante repeats what the user typed before, newest first, or oldest first when it has lost
// its session.
func unwrapped(blocks []TypedBlock) []TypedBlock {
	if len(blocks) == 0 {
		return nil
	}
	m := repeated().FindStringSubmatch(blocks[len(blocks)-1].Text)
	if m == nil {
		return blocks
	}
	newest := -1
	for i, b := range blocks {
		if strings.HasPrefix(b.Text, messageBegin) && (newest < 0 || m[1] != "") {
			newest = i
		}
	}
	if newest < 0 {
		return blocks
	}
	b := blocks[newest]
	b.Text = strings.TrimSuffix(strings.TrimPrefix(b.Text, messageBegin), messageEnd)
	return []TypedBlock{b}
}

const (
	messageBegin = "<previous_user_message>"
	messageEnd   = "</previous_user_message>"
)

// repeated matches the last block of avante's prompts. The group says that the messages before it
// are oldest first.
var repeated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^<system_context>Continuing from previous (ACP )?session with `)
})

// textBlock is a content block as far as it tells who wrote it.
type textBlock struct {
	Type, Text  string
	Annotations json.RawMessage
}

// editorBlocks matches the text blocks in which editors put what the user did not type: files and
// selections as XML elements (several Neovim plugins), rules and files of CodeCompanion, and the
// hint of agentic.nvim about its selections.
var editorBlocks = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("^(?s:<([A-Za-z][\\w.-]*)[\\s>].*</([A-Za-z][\\w.-]*)>$" +
		"|Sharing `[^`\n]+`:\n\n---\n.*---$" +
		"|Sharing the following file as context: [^\n]+$" +
		"|IMPORTANT: Focus and respect the line numbers provided in the <line_start> )")
})

// fromEditor reports whether the editor wrote the block, not the user.
func (b textBlock) fromEditor() bool {
	var annotations struct{ Audience []string }
	if json.Unmarshal(b.Annotations, &annotations) == nil && len(annotations.Audience) > 0 && !slices.Contains(annotations.Audience, "user") {
		return true
	}
	m := editorBlocks().FindStringSubmatch(strings.TrimFunc(b.Text, unicode.IsSpace))
	return m != nil && m[1] == m[2]
}

// FilePath returns the absolute path in a file URI, which need not lie in the roots, and the
// fragment after it, such as "L3-L9".
func FilePath(uri string) (path, fragment string, err error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", "", errors.New("it is not a URI")
	case u.Scheme != "file":
		return "", "", errors.New("only links to files are supported")
	case u.Host != "" && u.Host != "localhost":
		return "", "", errors.New("it names another computer")
	case !strings.HasPrefix(u.Path, "/"):
		return "", "", errors.New("it has no absolute path")
	}
	path = u.Path
	if filepath.VolumeName(filepath.FromSlash(path[1:])) != "" { // file:///C:/dir
		path = path[1:]
	}
	return filepath.FromSlash(path), u.Fragment, nil
}
