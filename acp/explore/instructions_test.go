package explore

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// Clause A25.
func TestInstructions(t *testing.T) {
	app, shared, skills := example(t)
	c := open(t, skills, app, shared)
	text := c.ask("/instructions").text()
	require.Equal(t, c.client.catalog.Instructions(nil).String()+"\n", text)
	require.Less(t, strings.Index(text, "# How we work"),
		strings.Index(text, "# Working on the order service"))
	require.Contains(t, text, "not by the user", "A30")
	require.Contains(t, open(t, plant(t, nil)).ask("/instructions").text(),
		"The folders contain no instructions.")
	both := plant(t, fileTree{"AGENTS.md": "Use tabs.", "CLAUDE.md": "Use spaces."})
	text = open(t, both).ask("/instructions").text()
	require.Contains(t, text[strings.Index(text, "\nFiles that are not used"):], "CLAUDE.md: shadowed")
}

func TestInstructionsForAPath(t *testing.T) {
	cwd := plant(t, fileTree{"AGENTS.md": "Of all.\n", "web/CLAUDE.md": "Of the web.\n",
		"web/AGENTS.md": "First.\n", "web/a.ts": ""})
	other := plant(t, fileTree{"lib/a.go": ""})
	c := open(t, cwd, other)
	label := filepath.Base(cwd)
	text := c.ask("/instructions web/a.ts").text()
	require.Contains(t, text, "Of all.")
	require.Contains(t, text, "First.")
	require.NotContains(t, text, "Of the web.")
	require.Contains(t, text,
		"In addition to those of whole folders, these apply to `web/a.ts`: `"+label+"/web/AGENTS.md`.")
	require.Contains(t, text, "CLAUDE.md: shadowed")

	require.Contains(t, c.ask("/instructions lib/a.go").text(),
		"Did you mean `/instructions "+filepath.Join(other, "lib", "a.go")+"`?", "A20")
	require.Contains(t, c.ask("/instructions "+plant(t, nil)+"/x").text(),
		"outside the session's folders")
}

// Clause D2.
func TestInstructionsOfDirectoriesAreMentioned(t *testing.T) {
	cwd := plant(t, fileTree{"AGENTS.md": "Of all.\n", "main.go": "package main\n"})
	other := plant(t, fileTree{"web/AGENTS.md": "Of the web.\n",
		"web/deep/CLAUDE.md": "Of the depths.\n", "web/deep/a.ts": "a\n", "web/deep/c.ts": "c\n", "web/b.ts": "b\n"})
	c := open(t, cwd, other)
	require.NotContains(t, c.ask("/read main.go").text(), "has instructions",
		"those of roots are in /instructions")
	require.Contains(t, c.ask("/read "+filepath.Join(other, "web", "b.ts")).text(),
		"has instructions: read \""+filepath.Join(other, "web", "AGENTS.md")+"\"")
	require.Contains(t, c.ask("/read "+filepath.Join(other, "web", "deep", "c.ts")).text(),
		filepath.Join(other, "web", "deep", "CLAUDE.md"), "each once")
	require.NotContains(t, c.ask("/read "+filepath.Join(other, "web", "deep", "a.ts")).text(),
		"has instructions")
}

// What the user has not let be read says nothing of the instructions beside it.
//
// Clause D2.
func TestRejectedReadingMentionsNothing(t *testing.T) {
	c := open(t, plant(t, fileTree{"web/AGENTS.md": "Of the web.\n", "web/a.ts": "a\n"}))
	c.client.workspace = c.client.workspace.Checked(func(a workspace.Access, _ error) error {
		if strings.HasSuffix(a.At.Path(), "a.ts") {
			return errors.New("not yours")
		}
		return nil
	})
	require.NotContains(t, c.ask("/read web/a.ts").text(), "AGENTS.md")
}
