// Package prompts reads the prompts that editors send: what the user typed, the slash command in
// it, and the paths in links. What particular editors add to prompts is in editors.go.
package prompts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Block is a text block that the user typed.
type Block struct {
	Index int // in the prompt
	// Text is the text of the block, without marks that an editor puts around it.
	Text string
}

// Typed returns the text blocks in the params of a session/prompt that the user typed. It leaves
// out those in which an editor put rules, files or selections, unless nothing else would be left.
// If there is a slash command, the first block returned begins with it. If several blocks begin
// with a command, the last of them counts, and the blocks before it are left out too.
func Typed(params json.RawMessage) ([]Block, error) {
	var p struct{ Prompt []textBlock }
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("cannot read the prompt: %w", err)
	}
	var all, typed []Block
	for i, b := range p.Prompt {
		if b.Type != "text" {
			continue
		}
		all = append(all, Block{i, b.Text})
		if !b.fromEditor() {
			typed = append(typed, Block{i, b.Text})
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

// laterCommand matches a block that is a slash command even after another block that the user may
// have typed. It does not match a path, a comment, or a text that continues a line after a mention.
var laterCommand = text.Pattern(`^(?:\s*\n)?/[\pL\pN_][^\s/]*(?:\s|$)`)

// IsCommandName reports whether a name after a slash is that of a command, and not the rest of a
// path or a comment.
func IsCommandName(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	return (unicode.IsLetter(first) || unicode.IsNumber(first) || first == '_') &&
		!strings.Contains(name, "/")
}

// Command is a slash command that the user typed.
type Command struct {
	// Name is the name of the command, "" if the prompt has none.
	Name string
	// Arguments are what the user typed after the name.
	Arguments string
	// Block is the block with the name.
	Block Block
}

// ParseCommand returns the slash command in the params of a session/prompt, if there is one.
func ParseCommand(params json.RawMessage) Command {
	typed, err := Typed(params)
	if err != nil || len(typed) == 0 {
		return Command{}
	}
	first := text.TrimTyped(strings.TrimLeftFunc(typed[0].Text, unicode.IsSpace))
	line, ok := strings.CutPrefix(first, "/")
	if !ok {
		return Command{}
	}
	for _, b := range typed[1:] {
		line += " " + text.TrimTyped(b.Text)
	}
	name, arguments := text.CutWord(line)
	return Command{Name: name, Arguments: arguments, Block: typed[0]}
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
