package prompts

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/text"
)

// unwrapped returns blocks. If avante sent them, it returns only the newest message, without its
// mark: avante repeats earlier messages of the user, newest first, or oldest first when it has lost
// its session.
func unwrapped(blocks []Block) []Block {
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
	return []Block{b}
}

const (
	messageBegin = "<previous_user_message>"
	messageEnd   = "</previous_user_message>"
)

// repeated matches the last block of avante's prompts. The group says that the messages before it
// are oldest first.
var repeated = text.Pattern(`^<system_context>Continuing from previous (ACP )?session with `)

// textBlock has the members of a content block that show who wrote it.
type textBlock struct {
	Type, Text  string
	Annotations json.RawMessage
}

// editorBlocks matches text blocks that editors add and the user did not type: files and selections
// as XML elements (several Neovim plugins), rules and files of CodeCompanion, and the hint of
// agentic.nvim about its selections.
var editorBlocks = text.Pattern("^(?s:<([A-Za-z][\\w.-]*)[\\s>].*</([A-Za-z][\\w.-]*)>$" +
	"|Sharing `[^`\n]+`:\n\n---\n.*---$" +
	"|Sharing the following file as context: [^\n]+$" +
	"|IMPORTANT: Focus and respect the line numbers provided in the <line_start> )")

// fromEditor reports whether the editor wrote the block, not the user.
func (b textBlock) fromEditor() bool {
	var annotations struct{ Audience []string }
	if json.Unmarshal(b.Annotations, &annotations) == nil && len(annotations.Audience) > 0 &&
		!slices.Contains(annotations.Audience, "user") {
		return true
	}
	m := editorBlocks().FindStringSubmatch(strings.TrimFunc(b.Text, unicode.IsSpace))
	return m != nil && m[1] == m[2]
}
