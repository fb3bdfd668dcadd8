package main

import (
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSplitCommand(t *testing.T) {
	for line, want := range map[string][]string{
		"":                          nil,
		"  a  b\tc\n":               {"a", "b", "c"},
		`a 'b c' "d e"f ''`:         {"a", "b c", "d ef", ""},
		`a\ b "c\"d" 'e\'`:          {"a b", `c"d`, `e\`},
		`C:\dir\x "D:\my dir\" \\s`: nil,
		`C:\dir\x.exe \\\\host\y`:   {`C:\dir\x.exe`, `\\host\y`},
		"$HOME *":                   {"$HOME", "*"},
	} {
		words, err := splitCommand(line)
		if want == nil && line != "" {
			require.Error(t, err, line)
			continue
		}
		require.NoError(t, err, line)
		require.Equal(t, want, words, line)
	}
}

func TestSplitCommand_quoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a"'\\ $\n]{0,6}`), 1, 5).Draw(t, "words")
		var quoted []string
		for _, word := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'"'"'`)+"'")
		}
		got, err := splitCommand(strings.Join(quoted, " "))
		if err != nil || !equal(words, got) {
			t.Fatalf("%q became %q, %v", words, got, err)
		}
	})
}

func equal(a, b []string) bool {
	return strings.Join(a, "\x00") == strings.Join(b, "\x00") && len(a) == len(b)
}

func TestParseMCPConfig(t *testing.T) {
	servers, err := parseMCPConfig([]byte(`{"mcpServers": {
		"z": {"command": "c", "args": ["${X}"], "env": {"B": "1", "A": "2"}, "disabled": false},
		"a": {"url": "http://h"},
		"s": {"type": "sse", "url": "http://s", "headers": {"H": "v"}}
	}, "other": 1}`))
	require.NoError(t, err)
	require.Equal(t, []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "z", Command: "c", Args: []string{"${X}"},
			Env: []sdk.EnvVariable{{Name: "B", Value: "1"}, {Name: "A", Value: "2"}}}},
		{Http: &sdk.McpServerHttpInline{Name: "a", Url: "http://h", Headers: []sdk.HttpHeader{},
			Type: "http"}},
		{Sse: &sdk.McpServerSseInline{Name: "s", Url: "http://s",
			Headers: []sdk.HttpHeader{{Name: "H", Value: "v"}}, Type: "sse"}},
	}, servers)
	for text, why := range map[string]string{
		`[]`:                        "not a JSON object",
		`{}`:                        "mcpServers",
		`{"mcpServers": {"a": {}}}`: "mcpServers.a.command",
		`{"mcpServers": {"a": {"type": "carrier pigeon"}}}`:              "stdio, http or sse",
		`{"mcpServers": {"a": {"command": "c", "env": {"T": 1}}}}`:       "mcpServers.a.env.T",
		`{"mcpServers": {"a": {"command": "c"}, "a": {"command": "d"}}}`: `two servers called "a"`,
	} {
		_, err := parseMCPConfig([]byte(text))
		require.ErrorContains(t, err, why, text)
	}
}
