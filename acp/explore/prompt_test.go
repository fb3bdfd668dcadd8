package explore

import (
	"encoding/json"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestReadPrompt(t *testing.T) {
	for _, c := range []struct {
		name          string
		blocks        string
		command, text string
	}{
		{"words", `[{"type":"text","text":" find me "}]`, "", "find me"},
		{"a command", `[{"type":"text","text":"/find *.go"}]`, "find", "*.go"},
		{"a command on its own line", `[{"type":"text","text":"/search\n a b \n"}]`, "search",
			"a b"},
		{"several blocks", `[{"type":"text","text":"/read "},{"type":"text","text":"a.go"}]`,
			"read", "a.go"},
		{"a command in a later block", `[{"type":"text","text":"Sharing ` + "`AGENTS.md`" +
			`:\n\n---\n/find x\n---"},{"type":"text","text":"/search a b"}]`, "search", "a b"},
		{"a path in a later block", `[{"type":"text","text":"what is"},{"type":"text",` +
			`"text":"/usr/bin"}]`, "", "what is /usr/bin"},
		{"a slash in the first text behind another block",
			`[{"type":"image"},{"type":"text","text":"/help"}]`, "help", ""},
		{"nothing", `[]`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := readPrompt([]byte(`{"prompt":` + c.blocks + `}`))
			require.NoError(t, err)
			require.Equal(t, c.command, p.command)
			require.Equal(t, c.text, p.text)
		})
	}
}

func TestInvalidPrompt(t *testing.T) {
	_, err := readPrompt([]byte(`{"prompt":7}`))
	var refusal *jsonrpc.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, jsonrpc.CodeInvalidParams, refusal.Code)
}

func TestOtherBlocks(t *testing.T) {
	c := open(t, plant(t, fileTree{"a.txt": "needle\n"}))
	a := c.prompt(t.Context(), []map[string]any{
		{"type": "image", "data": "", "mimeType": "image/png"},
		{"type": "text", "text": "needle"},
		{"type": "hologram"},
		{"type": "image", "data": "", "mimeType": "image/png"},
	})
	require.Equal(t, "end_turn", a.stop)
	require.Contains(t, a.text(), "2 blocks of type `image` left out")
	require.Contains(t, a.text(), "1 block of type `hologram` left out")
	require.Contains(t, a.lines(), "1:needle")
}

func TestLinks(t *testing.T) {
	cwd := plant(t, fileTree{"a b.txt": "one\ntwo\nthree\n"})
	uri := dir(t, cwd).URI()
	c := open(t, cwd)

	a := c.ask("", uri+"/a%20b.txt")
	require.Equal(t, []string{"one", "two", "three"}, a.lines()[1:])

	a = c.ask("/read", uri+"/a%20b.txt#L2-L3")
	require.Equal(t, []string{"two", "three"}, a.lines()[1:])

	a = c.ask("needle", uri+"/a%20b.txt")
	require.Contains(t, a.text(), "do not narrow the search")

	for _, bad := range []string{"https://example.com/x", "file://elsewhere/x", "file:x", "%"} {
		a = c.ask("", bad)
		require.Contains(t, a.text(), "was left out", bad)
	}
}

// A link is the user's word, not a grant: it is contained like any path.
//
// Clause A24.
func TestLinkOutsideTheRoots(t *testing.T) {
	outside := plant(t, fileTree{"secret": "hidden\n"})
	a := open(t, plant(t, nil)).ask("", dir(t, outside).URI()+"/secret")
	require.Equal(t, "end_turn", a.stop)
	require.Contains(t, a.text(), "outside the session's folders")
	require.NotContains(t, a.text(), "hidden")
	require.Equal(t, sdk.ToolCallStatusFailed, a.call(t).Status)
}

func TestLines(t *testing.T) {
	for argument, want := range map[string]link{
		"a.go": {"a.go", 0, 0}, "a.go:3": {"a.go", 3, 3}, "a.go:3-9": {"a.go", 3, 9},
		"a.go:9-3": {"a.go", 3, 9}, "a.go:3-": {"a.go", 3, 0}, "a:1:2": {"a:1", 2, 2},
		"a.go:x": {"a.go:x", 0, 0}, ":3": {":3", 0, 0}, "a:0": {"a", 1, 1},
	} {
		got, _ := splitLines(argument)
		require.Equal(t, want, got, argument)
	}
	for fragment, want := range map[string]string{"": "", "#L3": "3", "#L3-L9": "3-9", "#L3:9": "3-9",
		"#L9-L3": "3-9", "#top": "", "#L": ""} {
		l, err := parseLink("file:///a" + fragment)
		require.NoError(t, err)
		want, _ := splitLines("/a:" + want)
		want.path = "/a"
		require.Equal(t, want, l, fragment)
	}
}

func dir(t testing.TB, path string) workspace.Dir {
	t.Helper()
	d, err := workspace.ParseDir(path)
	require.NoError(t, err)
	return d
}

// FuzzPrompt feeds any params, then any URI and argument.
func FuzzPrompt(f *testing.F) {
	f.Add([]byte(`{"prompt":[{"type":"text","text":"/read a:1-2"},{"type":"resource_link",`+
		`"uri":"file:///a#L3"}]}`), "file:///C:/x", "a:3-")
	f.Fuzz(func(t *testing.T, params []byte, uri, argument string) {
		if p, err := readPrompt(params); err == nil {
			_, err := json.Marshal(p.notes())
			require.NoError(t, err)
		}
		_, _ = parseLink(uri)
		if l, ok := splitLines(argument); ok {
			require.NotEmpty(t, l.path)
			require.GreaterOrEqual(t, l.first, 1)
			require.True(t, l.last == 0 || l.first <= l.last)
		}
	})
}
