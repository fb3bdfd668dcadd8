package model

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// promptParts returns the content blocks of a prompt as parts of the user's message, and its slash
// command, if any. If the command is not for the model, the message consists only of the blocks
// before it. The result depends on the blocks alone, so that a stored prompt becomes the same
// message again.
func promptParts(blocks []backend.Raw) ([]llm.Part, prompts.Command) {
	slash := prompts.ParseCommand(backend.Encode(map[string]any{"prompt": blocks}))
	if isBuiltin(slash) {
		blocks = blocks[:slash.Block.Index]
	}
	var parts []llm.Part
	for _, raw := range blocks {
		if p, _ := blockPart(raw); p != nil && p != llm.Text("") {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 && slash.Name == "" {
		parts = []llm.Part{llm.Text("(The user's message is empty.)")}
	}
	return parts, slash
}

// blockPart returns a content block as a part of a message. For a type of block that is never sent
// to models, unused is that type; otherwise it is "".
func blockPart(raw backend.Raw) (p llm.Part, unused string) {
	var b struct {
		Type, Text, Data, URI, Name string
		Resource                    struct {
			URI, MIMEType, Blob string
			Text                *string
		}
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return llm.Text("[A block that cannot be read was left out.]"), "unknown"
	}
	switch {
	case b.Type == "text" && strings.TrimSpace(b.Text) == "":
		return nil, "" // servers reject it
	case b.Type == "text":
		return llm.Text(b.Text), ""
	case b.Type == "image":
		return mediaPart(b.Data, "an image")
	case b.Type == "resource_link":
		if path := filePath(b.URI); path != "" {
			return llm.Text("[The user refers to the file " + text.Printable(path) + "]"), ""
		}
		name, uri := text.Printable(b.Name), text.Printable(b.URI)
		return llm.Text("[The user refers to " + name + ", " + uri + "]"), ""
	case b.Type == "resource" && b.Resource.Text != nil:
		name := text.Printable(cmp.Or(filePath(b.Resource.URI), b.Resource.URI))
		return llm.Text("[The user attached " + name + "]\n" + text.Block("", *b.Resource.Text)), ""
	case b.Type == "resource" && strings.HasPrefix(b.Resource.MIMEType, "image/"):
		return mediaPart(b.Resource.Blob, "an image")
	case b.Type == "resource" && b.Resource.MIMEType == llm.PDF:
		return mediaPart(b.Resource.Blob, "a document")
	case b.Type == "resource":
		return llm.Text("[The user attached " + text.Printable(b.Resource.URI) +
			", which is not text and was left out.]"), "resource"
	default:
		kind := text.Line(b.Type, 50)
		return llm.Text("[The user attached a block of type " + text.Printable(kind) +
			", which was left out.]"), kind
	}
}

// mediaPart returns an image or document as a part of a message.
func mediaPart(data, what string) (p llm.Part, unused string) {
	decoded, _ := base64.StdEncoding.DecodeString(data)
	media, err := newMedia(decoded)
	if err != nil {
		_, kind, _ := strings.Cut(what, " ")
		said := "[The user attached " + what + ", which was left out: " + err.Error() + ".]"
		return llm.Text(said), kind
	}
	return media, ""
}

// The sizes of the largest images and documents that servers of models commonly accept, in bytes.
const (
	maxImage    = 3_500_000
	maxDocument = 8_000_000
)

var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// newMedia returns an image or document for the model, or why it cannot be sent. A server that does
// not accept it rejects the whole conversation, even if only the type is wrong.
func newMedia(data []byte) (llm.Media, error) {
	mediaType, most := http.DetectContentType(data), maxImage
	if mediaType == llm.PDF {
		most = maxDocument
	} else if !slices.Contains(imageTypes, mediaType) {
		return llm.Media{}, errors.New("it is not a PNG, JPEG, GIF or WebP image or a PDF document")
	}
	if len(data) > most {
		size := text.Size(len(data))
		return llm.Media{}, fmt.Errorf("it has %s, the limit is %s", size, text.Size(most))
	}
	return llm.Media{MediaType: mediaType, Data: data}, nil
}

// filePath returns the path in a URI of a local file with its lines, such as /dir/a.go (L3), "" for
// other URIs. Whether it is in the roots is checked when a tool opens it.
func filePath(uri string) string {
	path, fragment, err := prompts.FilePath(uri)
	if err == nil && fragment != "" {
		path += " (" + fragment + ")"
	}
	return path
}

// prompt adds the user's prompt to the conversation, and tells the user what is left out of it. It
// expands a slash command that is a skill or command of a root, and returns any slash command.
func (t *modelTurn) prompt(ctx context.Context, params backend.Raw) (prompts.Command, error) {
	var p struct{ Prompt []backend.Raw }
	if err := json.Unmarshal(params, &p); err != nil {
		return prompts.Command{}, fmt.Errorf("cannot read the prompt: %w", err)
	}
	slash := t.conversation.addPrompt(p.Prompt)
	if isBuiltin(slash) {
		return slash, nil
	}
	if err := t.noteUnused(ctx, p.Prompt); err != nil {
		return slash, err
	}
	if err := t.tellRoots(ctx); err != nil {
		return slash, err
	}
	offered, _ := t.host.Catalog().SlashCommands(backend.OwnCommands(Kind)...)
	for _, c := range offered {
		if c.Name == slash.Name {
			return slash, t.expand(ctx, c.Artifact, slash.Arguments)
		}
	}
	if strings.Contains(slash.Name, ":") {
		return slash, t.serverPrompt(ctx, slash)
	}
	return slash, nil // it may be a path, or something else that the model understands
}

// serverPrompt adds the prompt of an MCP server to the user's message, if there is one of this
// name.
func (t *modelTurn) serverPrompt(ctx context.Context, slash prompts.Command) error {
	result, err := t.host.Tools().Prompt(ctx, slash.Name, slash.Arguments)
	name := text.Printable(slash.Name)
	switch {
	case err != nil && endsTurn(ctx, err):
		return err
	case errors.As(err, new(*mcp.UnknownNameError)):
		return nil
	case err != nil:
		return t.note(ctx, fmt.Sprintf("Cannot get the prompt %s: %s.\n\n", text.Code(name),
			text.Plain(err.Error())))
	}
	said, _ := t.fromServer(result)
	message := fmt.Sprintf("The user called the prompt %s of an MCP server. This is its text. The "+
		"server wrote it, not the user.\n%s", name, text.Block("", strings.TrimSpace(said)))
	return t.addToPrompt(ctx, sdk.ToolKindRead, "Get prompt "+name, "", message)
}

// noteUnused tells the user which blocks are not sent to the model.
func (t *modelTurn) noteUnused(ctx context.Context, blocks []backend.Raw) error {
	counts := make(map[string]int)
	for _, raw := range blocks {
		p, unused := blockPart(raw)
		if media, ok := p.(llm.Media); ok && !t.endpoint.Model().Takes(media.MediaType) {
			unused = "image"
			if media.MediaType == llm.PDF {
				unused = llm.PDF
			}
		}
		if unused != "" {
			counts[unused]++
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		blocks := text.Count(counts[kind], "block", "blocks") + " of type " + text.Code(kind)
		note := blocks + " left out: the model cannot read it.\n\n"
		if err := t.note(ctx, note); err != nil {
			return err
		}
	}
	return nil
}

// expand adds the text of a skill or command to the user's message.
func (t *modelTurn) expand(ctx context.Context, a discovery.Artifact, arguments string) error {
	content, err := t.host.Catalog().Expand(ctx, a, arguments)
	name, root := text.Printable(a.Name), text.Printable(a.Root.Dir.String())
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return t.note(ctx, fmt.Sprintf("Cannot read the %s %s: %s.\n\n",
			a.Kind, text.Code(name), text.Plain(err.Error())))
	}
	message := fmt.Sprintf("The user called the %s %s. This is its text, from the file %s in "+
		"folder %d (%s). The author of the file wrote it, not the user.\n%s", a.Kind, name,
		text.Printable(a.Path), a.Root.Index, root,
		text.Block("", strings.TrimSpace(content.String())))
	if note := content.Note(); note != "" {
		message += note + "\n"
	}
	if arguments != "" && !content.TakesArguments {
		message += "The user's arguments: " + arguments + "\n"
	}
	title := fmt.Sprintf("Read %s %s of folder %s", a.Kind, name, root)
	return t.addToPrompt(ctx, sdk.ToolKindRead, title, a.Path, message)
}

// addToPrompt adds a text to the user's message, and shows that as a tool call so that it is
// stored. path is the file that it comes from, "" for none.
func (t *modelTurn) addToPrompt(
	ctx context.Context, kind sdk.ToolKind, title, path, message string,
) error {
	shown := sdk.SessionUpdateToolCall{
		SessionUpdate: string(sessionstore.ToolCall),
		ToolCallId:    sdk.ToolCallId("prompt-" + rand.Text()[:16]), Title: title, Kind: kind,
		Status: sdk.ToolCallStatusCompleted, RawOutput: map[string]string{"text": message},
		Meta: protocol.OurMeta(entry{Prompt: true}),
	}
	if path != "" {
		shown.RawInput = map[string]string{"path": path}
		shown.Locations = backend.Locations(path, 0)
	}
	return t.updates.Update(ctx, backend.NewUpdate(shown))
}
