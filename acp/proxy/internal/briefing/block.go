package briefing

import (
	"bytes"
	"encoding/json"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A block of text between these marks is only for the child: it is removed from replays and titles
// that the child sends.
const (
	blockTag   = "acp-agent-context"
	blockBegin = "<" + blockTag + ">"
	blockEnd   = "</" + blockTag + ">"
)

// Block returns the parts that are not empty as a marked block, or "". End marks in them are
// escaped.
func Block(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, strings.ReplaceAll(part, "</"+blockTag, `<\/`+blockTag))
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return blockBegin + "\n" + strings.Join(kept, "\n") + blockEnd
}

// AppendText returns the params of a prompt with a text block after its own content, which may
// begin with a command of the child. A prompt that is not an array is left for the child to reject.
func AppendText(params backend.Raw, text string) backend.Raw {
	prompt := strictjson.Find(params, "prompt")
	block := sdk.TextBlock("\n\n" + text) // some agents join the texts of blocks
	longer, ok := strictjson.Append(prompt, backend.Encode(block))
	if text == "" || !ok || len(prompt) == 0 {
		return params
	}
	return strictjson.Set(params, "prompt", longer)
}

// WithoutBlocks removes marked blocks from an update. It returns false if the update contained
// nothing else.
func WithoutBlocks(u backend.Update) (backend.Update, bool) {
	path, edit := []string{"update", "content", "text"}, withoutBlocks
	switch {
	case u.Kind == sessionstore.SessionInfoUpdate:
		path, edit = []string{"update", "title"}, WithoutBlocksInTitle
	case u.Kind != sessionstore.UserMessageChunk, !bytes.Contains(u.Raw, []byte(blockTag)):
		return u, true
	}
	var before string
	if json.Unmarshal(strictjson.Find(u.Raw, path...), &before) != nil {
		return u, true
	}
	after := edit(before)
	if after == before {
		return u, true
	}
	u.Raw = strictjson.SetAt(u.Raw, backend.Encode(after), path...)
	return u, after != ""
}

// markedBlock matches a block with its marks.
var markedBlock = text.Pattern("(?s)" + blockBegin + ".*?" + blockEnd + "\n?")

// withoutBlocks removes marked blocks from s. A mark without its counterpart stays, because it was
// not written here.
func withoutBlocks(s string) string {
	left := markedBlock().ReplaceAllString(s, "")
	if left == s {
		return s
	}
	return strings.TrimSpace(left)
}

// WithoutBlocksInTitle removes marked blocks from a title. A title is the beginning of a prompt, so
// the last block, or its mark, may have been cut off.
func WithoutBlocksInTitle(title string) string {
	const recognizable = len("<acp-agent")
	title = withoutBlocks(title)
	before, _, begun := strings.Cut(title, blockBegin)
	if !begun {
		at := max(0, strings.LastIndexByte(title, blockBegin[0]))
		mark := strings.TrimRight(title[at:], ". …")
		if len(mark) < recognizable || !strings.HasPrefix(blockBegin, mark) {
			return title
		}
		before = title[:at]
	}
	return strings.TrimSpace(before)
}
