package runner

import (
	"path/filepath"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

func TestBlocks(t *testing.T) {
	app, lib := dirtest.New(t, "a.go", "", "my file.md", "", "dir/x", ""), dirtest.New(t, "b.go", "")
	text := sdk.TextBlock
	link := func(path ...string) sdk.ContentBlock {
		whole := filepath.Join(path...)
		return sdk.ResourceLinkBlock(filepath.Base(whole), "file://"+filepath.ToSlash(whole))
	}
	for prompt, want := range map[string][]sdk.ContentBlock{
		"hello":          {text("hello")},
		"@a.go":          {link(app, "a.go")},
		"read @a.go now": {text("read "), link(app, "a.go"), text(" now")},
		"(@a.go, @b.go)?\n@dir/": {text("("), link(app, "a.go"), text(", "), link(lib, "b.go"),
			text(")?\n"), link(app, "dir")},
		"@" + filepath.Join(lib, "b.go") + ".":  {link(lib, "b.go"), text(".")},
		"@gone.go and me@a.go, @ and @Override": {text("@gone.go and me@a.go, @ and @Override")},
		"/read @a.go":                           {text("/read "), link(app, "a.go")},
	} {
		require.Equal(t, want, Prompt{Text: prompt}.Blocks([]string{app, lib}), prompt)
	}
	require.Equal(t, []sdk.ContentBlock{text("see "), sdk.ResourceLinkBlock("my file.md",
		"file://"+filepath.ToSlash(app)+"/my%20file.md"), text("!")},
		Prompt{Text: `see @"my file.md"!`}.Blocks([]string{app}))
	require.Equal(t, []sdk.ContentBlock{text("/write f\n@a.go\n\n@a.go")},
		Prompt{"/write f\n@a.go", "@a.go"}.Blocks([]string{app}), "it is content")
}

// Clause K1.
func TestCost(t *testing.T) {
	for response, want := range map[string]string{
		``:                                   "",
		`{"stopReason":"end"}`:               "",
		`{"_meta":{"acp-agent":{"cost":7}}}`: "",
		`{"_meta":{"acp-agent":{"cost":{"turn":{},"session":{"USD":1.5}}}}}`: "cost of the session 1.5000 USD, as reported by the agent",
		`{"_meta":{"acp-agent":{"cost":{"turn":{"USD":0.25},"session":{"USD":1.5,"EUR":2}}}}}`: "cost of the turn 0.2500 USD, " +
			"of the session 2.0000 EUR + 1.5000 USD, as reported by the agent",
		`{"_meta":{"acp-agent":{"cost":{"session":{"\u001b[2J":1}}}}}`: "cost of the session 1.0000 \ufffd[2J, as reported by the agent",
	} {
		require.Equal(t, want, Cost([]byte(response)), response)
	}
}
