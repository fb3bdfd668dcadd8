package acp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// Each capability of a client opens its own methods and no other's.
//
// Clause A26.
func TestCapabilities(t *testing.T) {
	a := folder(t)
	file := encode(map[string]string{"path": filepath.Join(a, "file")})
	params := map[string]string{
		"fs/read_text_file": file, "fs/write_text_file": file,
		"terminal/create": `{"command":"x"}`, "terminal/output": `{"terminalId":"t"}`,
		"terminal/wait_for_exit": `{"terminalId":"t"}`,
		"terminal/kill":          `{"terminalId":"t"}`, "terminal/release": `{"terminalId":"t"}`,
		"elicitation/create": `{"mode":"url","message":"x","elicitationId":"1",` +
			`"url":"https://example.com"}`,
	}
	for capabilities, offered := range map[string]string{
		`{}`:                            "",
		`{"fs":{"readTextFile":true}}`:  "fs/read_text_file",
		`{"fs":{"writeTextFile":true}}`: "fs/write_text_file",
		`{"fs":{"readTextFile":false,"writeTextFile":null},"terminal":false,"elicitation":null}`: "",
		`{"fs":true,"terminal":{},"elicitation":true}`:                                           "",
		`{"fs":{"readTextFile":"true"},"terminal":"true","elicitation":[]}`:                      "",
		`{"terminal":true}`:                      "terminal/",
		`{"elicitation":{"url":{},"form":null}}`: "elicitation/",
		`{"elicitation":{"form":{}}}`:            "",
		`{"elicitation":{}}`:                     "",
		`{"_meta":{"fs":{"readTextFile":true},"terminal":true,"elicitation":{}}}`: "",
	} {
		t.Run(capabilities, func(t *testing.T) {
			c := connect(t, acp.Options{})
			c.answer(func(message) string { return `{}` })
			c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`)
			id := c.open(a)
			for method, params := range params {
				answer := c.texts(id, "call "+method+" "+params)[0]
				reached := slices.ContainsFunc(c.messages(), func(m message) bool {
					return m.Method == method
				})
				want := offered != "" && strings.HasPrefix(method, offered)
				require.Equal(t, want, reached, method)
				require.Equal(t, !want, strings.Contains(answer, "does not offer "+method), answer)
			}
		})
	}
}

// An editor works by path, so a path is not given to it once the path leads to another folder than
// the one that was opened.
//
// Clause C13.
func TestReplacedRoot(t *testing.T) {
	for layout, roots := range map[string]func(top string) []string{
		"nested root": func(top string) []string {
			return []string{top, filepath.Join(top, "sub")}
		},
		"only root": func(top string) []string { return []string{filepath.Join(top, "sub")} },
		"root given as a link": func(top string) []string {
			link := filepath.Join(top, "link")
			require.NoError(t, os.Symlink("sub", link))
			return []string{link}
		},
	} {
		t.Run(layout, func(t *testing.T) {
			c := start(t, acp.Options{})
			c.answer(func(message) string { return `{}` })
			top, victim := folder(t), folder(t)
			sub := filepath.Join(top, "sub")
			require.NoError(t, os.Mkdir(sub, 0o700))
			all := roots(top)
			root := all[len(all)-1]
			for _, dir := range []string{sub, victim} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
			}
			id := c.open(all[0], all[1:]...)
			paths := func(dir string) map[string][]string {
				file := func(name string) string {
					return encode(
						map[string]string{"path": filepath.Join(dir, name), "content": "x"})
				}
				return map[string][]string{
					"fs/read_text_file":  {file("file"), file("new")},
					"fs/write_text_file": {file("file"), file("new")},
					"terminal/create":    {encode(map[string]string{"command": "x", "cwd": dir})},
				}
			}
			sent := func(method, params string) (reached bool, answer string) {
				before := len(c.messages())
				answer = c.texts(id, "call "+method+" "+params)[0]
				return slices.ContainsFunc(c.messages()[before:], func(m message) bool {
					return m.Method == method
				}), answer
			}
			for method, list := range paths(root) {
				for _, params := range list {
					reached, answer := sent(method, params)
					require.True(t, reached, "%s %s: %s", method, params, answer)
				}
			}
			replaced := root
			require.NoError(t, os.Rename(replaced, filepath.Join(top, "old")))
			require.NoError(t, os.Symlink(victim, replaced))
			for method, list := range paths(root) {
				for _, params := range list {
					reached, answer := sent(method, params)
					require.False(t, reached, "%s %s", method, params)
					require.Contains(t, answer,
						"the folder "+root+" was replaced after the session started: load the "+
							"session again")
				}
			}
			reached, _ := sent("terminal/create", `{"command":"x"}`)
			require.Equal(t, len(all) > 1, reached,
				"without a cwd, the terminal starts in that of the session")
			if len(all) > 1 {
				reached, answer := sent("fs/read_text_file",
					encode(map[string]string{"path": filepath.Join(top, "new")}))
				require.True(t, reached, "the other root is still what it was: %s", answer)
			}
			require.NoError(t, os.Remove(replaced))
			require.NoError(t, os.Rename(filepath.Join(top, "old"), replaced))
			reached, answer := sent("fs/read_text_file", paths(root)["fs/read_text_file"][0])
			require.True(t, reached, "it is back: %s", answer)
		})
	}
}

// Clause C13.
func TestFileKinds(t *testing.T) {
	c := start(t, acp.Options{})
	c.answer(func(message) string { return `{}` })
	root, outside := folder(t), folder(t)
	at := func(name string) string { return filepath.Join(root, name) }
	require.NoError(t, os.Mkdir(at("dir"), 0o700))
	require.NoError(t, os.WriteFile(at("file"), nil, 0o600))
	require.NoError(t, os.Symlink("file", at("link")))
	require.NoError(t, os.Symlink("dir/new", at("dangling")))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	require.NoError(t, os.Link(filepath.Join(outside, "file"), at("shared")))
	id := c.open(root)
	sent := func(method, member, path string) string {
		before := len(c.messages())
		answer := c.texts(id, "call "+method+" "+encode(map[string]string{member: path}))[0]
		if slices.ContainsFunc(c.messages()[before:], func(m message) bool {
			return m.Method == method
		}) {
			return ""
		}
		return answer
	}
	for _, method := range []string{"fs/read_text_file", "fs/write_text_file"} {
		for _, name := range []string{"file", "link", "new", "dangling", "dir/../file"} {
			require.Empty(t, sent(method, "path", root+"/"+name), "%s %s", method, name)
		}
		for name, want := range map[string]string{"shared": "hard links", "dir": "is a directory",
			"missing/new": "no such file"} {
			require.Contains(t, sent(method, "path", at(name)), want, method)
		}
	}
	require.Empty(t, sent("terminal/create", "cwd", at("dir")))
	require.Contains(t, sent("terminal/create", "cwd", at("file")), "not a directory")
	require.Contains(t, sent("terminal/create", "cwd", at("new")), "no such file")
}
