package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/workspace"
)

// readFile makes the session's agent read a file through the client, and returns what came of it.
func (c *client) readFile(id, path string) string {
	c.t.Helper()
	return c.texts(id, "call fs/read_text_file "+encode(map[string]string{"path": path}))[0]
}

// writeFile writes a file and returns its path.
func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// Clause P4.
func TestReadOutsideAsksUser(t *testing.T) {
	c := start(t, acp.Options{})
	root, outside := folder(t), folder(t)
	file := writeFile(t, filepath.Join(outside, "file"), "one\ntwo\n")
	link := filepath.Join(root, "README.md")
	require.NoError(t, os.Symlink(file, link))
	id := c.open(root)

	c.permit("reject-once")
	require.Contains(t, c.readFile(id, file), "did not allow")
	require.Len(t, c.questions(), 1)
	require.Contains(t, string(c.questions()[0].Params), encode(file)[1:len(file)])
	c.permit("cancelled")
	require.NotContains(t, c.readFile(id, file), "one")

	c.permit("allow-once")
	require.Contains(t, c.readFile(id, file), `{"content":"one\ntwo\n"}`)
	require.Contains(t, c.readFile(id, link), `{"content":"one\ntwo\n"}`)
	asked := c.questions()
	require.Len(t, asked, 4, "each time")
	require.Contains(t, string(asked[3].Params), file, "where the link leads")
	require.Contains(t, string(asked[3].Params), link, "and what was asked for")

	c.permit("allow-always")
	lines := c.texts(id, "call fs/read_text_file "+
		encode(map[string]any{"path": link, "line": 2, "limit": 1}))[0]
	require.Contains(t, lines, `{"content":"two\n"}`)
	require.Contains(t, c.readFile(id, file), "one")
	require.Len(t, c.questions(), 5, "no more about this file")
	c.permit("reject-once")
	other := writeFile(t, filepath.Join(outside, "other"), "o")
	require.Contains(t, c.readFile(id, other), "did not allow")
	require.Contains(t, c.readFile(c.open(root), file), "did not allow", "nor for another session")
	for _, m := range c.messages() {
		require.NotContains(t, m.Method, "fs/", "the client is never asked for the file")
	}
}

// Clause P4.
func TestReadOutsideReadsTheLinesThatWereAskedFor(t *testing.T) {
	c := start(t, acp.Options{})
	file := writeFile(t, filepath.Join(folder(t), "file"), "one\ntwo\nthree\n")
	id := c.open(folder(t))
	read := func(line, limit string) string {
		return c.texts(id, `call fs/read_text_file {"path":`+encode(file)+`,"line":`+line+`,"limit":`+limit+`}`)[0]
	}
	c.permit("cancelled")
	for _, c := range []struct{ line, limit, wrong string }{
		{"null", "-1", "limit -1"}, {"null", `"1"`, `limit "1"`}, {"null", "1.5", "limit 1.5"},
		{"null", "[]", "limit []"}, {"-1", "1", "line -1"}, {"0.5", "1", "line 0.5"},
		{"true", "1", "line true"}, {"{}", "-2", "line {}"},
	} {
		got := read(c.line, c.limit)
		require.Contains(t, got, c.wrong+" has the wrong type: want a whole number that is not negative")
		require.NotContains(t, got, "Go ")
	}
	require.Empty(t, c.questions(), "nobody is asked what would be refused")
	c.permit("allow-always")
	for _, c := range []struct{ line, limit, content string }{
		{"null", "null", `one\ntwo\nthree\n`}, {"0", "1", `one\n`}, {"2", "1", `two\n`},
		{"2.0", "1e1", `two\nthree\n`}, {"1", "0", ``}, {"3", "9999999999999999999999", `three\n`},
	} {
		require.Contains(t, read(c.line, c.limit), `{"content":"`+c.content+`"}`, "%v", c)
	}
}

// What cannot be approved is refused without a question, as before.
//
// Clauses P4, A26.
func TestReadOutsideIsRefused(t *testing.T) {
	root, outside, denied := folder(t), folder(t), folder(t)
	deny, err := workspace.ParseDir(denied)
	require.NoError(t, err)
	file := writeFile(t, filepath.Join(outside, "file"), "s3cret")
	secret := writeFile(t, filepath.Join(denied, "file"), "s3cret")
	links := map[string]string{"denied": secret, "dangling": outside + "/missing", "loop": "loop"}
	for name, to := range links {
		require.NoError(t, os.Symlink(to, filepath.Join(root, name)))
	}
	c := start(t, acp.Options{Workspace: workspace.Options{
		Policy: workspace.Policy{Deny: []workspace.Dir{deny}}}})
	c.permit("allow-always")
	id := c.open(root)
	for _, path := range []string{secret, outside, outside + "/missing", outside + "/../" +
		filepath.Base(outside) + "/file", root + "/denied", root + "/dangling", root + "/loop",
		"/proc/self/environ", "/dev/null", filepath.Base(file)} {
		answer := c.readFile(id, path)
		require.True(t, strings.HasPrefix(answer, " "), "%s: %s", path, answer)
	}
	require.Empty(t, c.questions())

	blind := connect(t, acp.Options{})
	blind.call("initialize", `{"protocolVersion":1}`)
	require.Contains(t, blind.readFile(blind.open(root), file), "does not offer fs/read_text_file")
}

// The file that the user saw is read, or none.
//
// Clauses P4, C11.
func TestFileReplacedDuringQuestion(t *testing.T) {
	root, outside := folder(t), folder(t)
	secret := writeFile(t, filepath.Join(outside, "secret"), "s3cret")
	for what, replace := range map[string]func(harmless, link string) error{
		"link": func(_, link string) error {
			require.NoError(t, os.Remove(link))
			return os.Symlink(secret, link)
		},
		"file": func(harmless, _ string) error {
			return os.Rename(writeFile(t, filepath.Join(outside, "new"), "s3cret"), harmless)
		},
		"file by a link": func(harmless, _ string) error {
			require.NoError(t, os.Remove(harmless))
			return os.Symlink(secret, harmless)
		},
		"folder by a link": func(harmless, _ string) error {
			dir := filepath.Dir(harmless)
			require.NoError(t, os.Rename(dir, dir+".old"))
			require.NoError(t, os.Mkdir(dir+".evil", 0o700))
			writeFile(t, filepath.Join(dir+".evil", "file"), "s3cret")
			return os.Symlink(dir+".evil", dir)
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := start(t, acp.Options{})
			id := c.open(root)
			dir := folder(t)
			harmless := writeFile(t, filepath.Join(dir, "file"), "harmless")
			link := filepath.Join(dir, "link")
			require.NoError(t, os.Symlink(harmless, link))
			c.answer(func(m message) string {
				if m.Method != "session/request_permission" {
					return ""
				}
				if err := replace(harmless, link); err != nil {
					return `{"outcome":{"outcome":"cancelled"}}`
				}
				return `{"outcome":{"outcome":"selected","optionId":"allow-once"}}`
			})
			answer := c.readFile(id, link)
			require.Contains(t, answer, "was replaced while you were asked")
			require.NotContains(t, answer, "s3cret")
		})
	}
}
