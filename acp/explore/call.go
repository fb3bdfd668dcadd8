package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// call answers /call. The servers' side of it shows the call to the client, and asks.
func (t *turn) call(ctx context.Context, p prompt) error {
	name, arguments := cutWord(p.text)
	if !strings.Contains(name, ".") {
		return t.write("Say which tool to call: " + code("/call SERVER.TOOL [JSON]") + ", such as " +
			code(`/call files.read {"path": "a.txt"}`) + ". " + code("/mcp tools") + " lists them.\n")
	}
	if arguments != "" && !json.Valid([]byte(arguments)) {
		return t.write("The arguments of " + code(name) + " are no JSON: " + code(clip(arguments, 200)) + ".\n")
	}
	if err := t.flush(); err != nil {
		return err
	}
	t.offers.stale = true
	result, err := t.host.Tools().Call(ctx, t.updates, name, backend.Raw(arguments))
	if err != nil {
		return t.unserved(ctx, err)
	}
	return t.showResult(name, result)
}

// showResult shows what a tool gave, as its server's word.
func (t *turn) showResult(name string, result backend.ToolResult) error {
	said := "The tool " + code(name) + " gave:\n\n"
	if result.Failed {
		said = "The tool " + code(name) + " reports an error:\n\n"
	}
	if len(result.Content) == 0 && len(result.Structured) == 0 {
		said = strings.TrimSuffix(said, ":\n\n") + ", and nothing with it.\n"
	}
	if err := t.write(said); err != nil {
		return err
	}
	if err := t.showBlocks(result.Content); err != nil {
		return err
	}
	if len(result.Structured) > 0 && len(result.Content) == 0 {
		if err := t.quote(string(result.Structured)); err != nil {
			return err
		}
	}
	if result.Truncated {
		return t.write("Cut: the tool gave more than is taken of a result.\n")
	}
	return nil
}

// showBlocks shows content blocks of a server: text quoted, and of others what they are.
func (t *turn) showBlocks(blocks []backend.Raw) error {
	for _, raw := range blocks {
		text, what := readBlock(raw)
		if what != "" {
			if err := t.write(what + "\n\n"); err != nil {
				return err
			}
		}
		if text == nil {
			continue
		}
		if err := t.quote(*text); err != nil {
			return err
		}
	}
	return nil
}

// readBlock is the text of a content block, nil if it has none, and what else there is to say of it.
func readBlock(raw backend.Raw) (text *string, what string) {
	var b struct {
		Type, URI, Name, MIMEType string
		Text                      *string
		Resource                  struct {
			URI, MIMEType string
			Text          *string
		}
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Sprintf("A block of %s that cannot be read.", size(len(raw)))
	}
	switch b.Type {
	case "text":
		return b.Text, ""
	case "resource":
		return b.Resource.Text, fmt.Sprintf("The resource %s, of type %s:", code(clip(b.Resource.URI, longestSaid)), code(clip(b.Resource.MIMEType, 100)))
	case "resource_link":
		return nil, fmt.Sprintf("A link to %s.", code(clip(b.URI, longestSaid)))
	default:
		return nil, fmt.Sprintf("A block of type %s (%s) of %s.", code(clip(b.Type, 50)), code(clip(b.MIMEType, 100)), size(len(raw)))
	}
}

// compact is JSON without the spaces between its tokens.
func compact(raw backend.Raw) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
