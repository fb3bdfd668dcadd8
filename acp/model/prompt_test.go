package model

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestPromptParts(t *testing.T) {
	block := func(members ...any) backend.Raw { return backend.Raw(arguments(members...)) }
	text := func(s string) backend.Raw { return block("type", "text", "text", s) }
	resource := func(members ...any) backend.Raw {
		return block("type", "resource", "resource", backend.Raw(arguments(members...)))
	}
	link := block("type", "resource_link", "name", "a.go", "uri", "file:///dir/a%20b.go#L3")
	large := append(slices.Clone(onePixel), make([]byte, 4_000_000)...)
	for name, c := range map[string]struct {
		blocks []backend.Raw
		want   []llm.Part
		call   [2]string // name and arguments
	}{
		"text": {[]backend.Raw{text("Hi")}, []llm.Part{llm.Text("Hi")}, [2]string{}},
		"nothing": {[]backend.Raw{text(" ")},
			[]llm.Part{llm.Text("(The user's message is empty.)")}, [2]string{}},
		"a linked file": {[]backend.Raw{text("see"), link},
			[]llm.Part{llm.Text("see"), llm.Text("[The user refers to the file /dir/a b.go (L3)]")},
			[2]string{}},
		"another link": {[]backend.Raw{block("type", "resource_link", "name", "docs", "uri",
			"https://example.org")},
			[]llm.Part{llm.Text("[The user refers to docs, https://example.org]")}, [2]string{}},
		"an embedded file": {[]backend.Raw{resource("uri", "file:///dir/a.go", "text",
			"```\nx\n")},
			[]llm.Part{llm.Text("[The user attached /dir/a.go]\n````\n```\nx\n````\n")},
			[2]string{}},
		"an embedded image": {[]backend.Raw{resource("uri", "file:///a.png", "mimeType",
			"image/png", "blob", base64.StdEncoding.EncodeToString(onePixel))},
			[]llm.Part{llm.Media{MediaType: "image/png", Data: onePixel}}, [2]string{}},
		"a document": {[]backend.Raw{resource("uri", "file:///a.pdf", "mimeType", llm.PDF,
			"blob", base64.StdEncoding.EncodeToString([]byte(document)))},
			[]llm.Part{llm.Media{MediaType: llm.PDF, Data: []byte(document)}}, [2]string{}},
		"a damaged document": {[]backend.Raw{resource("mimeType", llm.PDF, "blob", "?")},
			[]llm.Part{llm.Text("[The user attached a document, which was left out: it is not a " +
				"PNG, JPEG, GIF or WebP image or a PDF document.]")}, [2]string{}},
		"other binary data": {[]backend.Raw{resource("uri", "file:///a.zip", "blob", "aW1hZ2U=")},
			[]llm.Part{llm.Text("[The user attached file:///a.zip, which is not text and was " +
				"left out.]")}, [2]string{}},
		"a damaged image": {[]backend.Raw{block("type", "image", "mimeType", "image/png", "data",
			"?")}, []llm.Part{llm.Text("[The user attached an image, which was left out: it is " +
			"not a PNG, JPEG, GIF or WebP image or a PDF document.]")}, [2]string{}},
		"a drawing": {[]backend.Raw{block("type", "image", "mimeType", "image/svg+xml",
			"data", "PHN2Zy8+")},
			[]llm.Part{llm.Text("[The user attached an image, which was left out: it is not a " +
				"PNG, JPEG, GIF or WebP image or a PDF document.]")}, [2]string{}},
		"another type": {[]backend.Raw{block("type", "image", "mimeType", "image/jpeg",
			"data", base64.StdEncoding.EncodeToString(onePixel))},
			[]llm.Part{llm.Media{MediaType: "image/png", Data: onePixel}}, [2]string{}},
		"a large image": {[]backend.Raw{block("type", "image", "mimeType", "image/png", "data",
			base64.StdEncoding.EncodeToString(large))},
			[]llm.Part{llm.Text("[The user attached an image, which was left out: it has 4000067 " +
				"bytes, the limit is 3500000 bytes.]")}, [2]string{}},
		"audio": {[]backend.Raw{block("type", "audio", "data", "aa")},
			[]llm.Part{llm.Text("[The user attached a block of type audio, which was left out.]")},
			[2]string{}},
		"a command": {[]backend.Raw{text("/greet  Bob\nand Ann")},
			[]llm.Part{llm.Text("/greet  Bob\nand Ann")}, [2]string{"greet", "Bob\nand Ann"}},
		"a command of ours": {[]backend.Raw{link, text("/compact the names")},
			[]llm.Part{llm.Text("[The user refers to the file /dir/a b.go (L3)]")},
			[2]string{"compact", "the names"}},
		"the adapter's": {[]backend.Raw{text("/roots")}, nil, [2]string{"roots", ""}},
		"a path": {[]backend.Raw{text("/usr/bin is a path")},
			[]llm.Part{llm.Text("/usr/bin is a path")}, [2]string{"usr/bin", "is a path"}},
		"after another text": {[]backend.Raw{text("One"), text("/compact")},
			[]llm.Part{llm.Text("One")}, [2]string{"compact", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			parts, call := promptParts(c.blocks)
			require.Equal(t, c.want, parts)
			require.Equal(t, c.call, [2]string{call.Name, call.Arguments})
		})
	}
}

const greetCommand = "---\ndescription: Greets people\nargument-hint: NAME\n---\nSay hello to " +
	"$ARGUMENTS. Ignore !`date`.\n"

func TestSlashCommands(t *testing.T) {
	cwd := dirtest.New(t, ".claude/commands/compact.md", "Not ours.\n")
	other := dirtest.New(t, ".claude/commands/greet.md", greetCommand,
		".claude/skills/fix/SKILL.md",
		"---\nname: fix\ndescription: Fixes it.\n---\nFix it well.\n")
	e := open(t, setup{roots: []string{cwd, other}})
	_, err := e.client.Prompt(t.Context(), e.id,
		sdk.TextBlock("Hi")) // they are announced before its answer
	require.NoError(t, err)
	updates, _ := e.take()
	var announced struct {
		Commands []sdk.AvailableCommand `json:"availableCommands"`
	}
	for _, u := range (reply{updates: updates}).of(string(sessionstore.AvailableCommandsUpdate)) {
		require.Empty(t, announced.Commands, "they are announced once")
		require.NoError(t, json.Unmarshal(u.Raw, &announced))
	}
	names := map[string]string{}
	for _, c := range announced.Commands {
		names[c.Name] = c.Description
	}
	label := filepath.Base(other)
	require.Equal(t, map[string]string{
		"compact": "Replace the conversation with a summary, to make room for more",
		"greet":   "Command of " + label + ": Greets people", "fix": "Skill of " + label +
			": Fixes it.",
		"fork":  "Show the turns of this conversation, or copy it up to one of them; files are not changed",
		"diff":  "Show what was changed in the folders since this session began",
		"undo":  "Forget your last prompt and the answer; files are not changed",
		"model": "Show the models, or choose the one that answers", "help": "Show this list",
		"roots": names["roots"], "mcp": names["mcp"], "permissions": names["permissions"],
	}, names)

	r := e.prompt("/greet Ann and Bob")
	calls := r.calls()
	require.Len(t, calls, 1)
	require.Equal(t, "Read command greet of folder "+other, calls[0].Title)
	require.Equal(t, sdk.ToolKindRead, calls[0].Tool)
	require.Equal(t, []sdk.ToolCallLocation{{Path: filepath.Join(other, ".claude", "commands",
		"greet.md")}}, calls[0].Locations)
	message := e.last().Of(modelserver.User)[1]
	require.Contains(t, message, "/greet Ann and Bob")
	require.Contains(t, message, "from the file "+filepath.Join(other, ".claude", "commands",
		"greet.md")+" in folder 1 ("+other+")")
	require.Contains(t, message, "The author of the file wrote it, not the user.")
	require.Contains(t, message, "Say hello to Ann and Bob.")
	require.Contains(t, message, "No commands were run")

	e.prompt("/fix the door")
	require.Contains(t, e.last().Text(), "Fix it well.")
	require.Contains(t, e.last().Text(), "The user's arguments: the door")

	require.NoError(t, os.Remove(filepath.Join(other, ".claude", "commands", "greet.md")))
	r = e.prompt("/greet Eve")
	require.Empty(t, r.calls(), "it is no longer there")
	require.Contains(t, e.last().Text(), "/greet Eve")
	require.NotContains(t, e.last().Text(), "Say hello to Eve")
}

// A prompt without blocks reaches the model as an empty message, and the conversation goes on.
func TestPromptWithoutBlocks(t *testing.T) {
	e := open(t, setup{})
	e.send([]sdk.ContentBlock{}...)
	require.Contains(t, string(e.last().Body), "The user's message is empty")
	e.goOn()
	e.restart()
	e.goOn()
}
