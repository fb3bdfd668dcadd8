package model

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	large := append(slices.Clone(onePixel), make([]byte, 4_000_000)...)
	for _, record := range records(t, filepath.Join("testdata", "prompts.txt")) {
		t.Run(record[0], func(t *testing.T) {
			var blocks []backend.Raw
			require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(record[1], "LARGE",
				base64.StdEncoding.EncodeToString(large))), &blocks))
			parts, call := promptParts(blocks)
			require.Equal(t, record[2], fmt.Sprintf("%q %q", call.Name, call.Arguments))
			var got []string
			for _, part := range parts {
				switch p := part.(type) {
				case llm.Text:
					got = append(got, fmt.Sprintf("text %q", string(p)))
				case llm.Media:
					got = append(got, p.MediaType+" "+base64.StdEncoding.EncodeToString(p.Data))
				default:
					require.Fail(t, "another part", "%T", p)
				}
			}
			require.Equal(t, record[3:], append([]string{}, got...))
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
