package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/workspace"
)

// What a request that opens a session names, and what is declared if it names none, is listed,
// opened, and sent to the agent.
//
// Clause A33.
func TestEffectiveFolders(t *testing.T) {
	declared, named := folder(t), folder(t)
	var params atomic.Pointer[string]
	c := start(t, acp.Options{
		Backend: using(&scripted{opened: func(a backend.Activation, _ backend.Host) {
			params.Store(new(string(a.Params)))
		}}),
		Folders: func(workspace.Dir) []acp.Folder {
			return []acp.Folder{{Path: declared, Setting: "a setting"}}
		},
	})
	for _, method := range []string{"session/new", "session/load", "session/resume", "session/fork"} {
		for _, client := range [][]string{nil, {}, {named}} {
			want := client
			if client == nil {
				want = []string{declared}
			}
			cwd := folder(t)
			id := c.after(method, c.open(cwd, named), cwd, client)
			require.Equal(t, want, c.find(id).AdditionalDirectories, method)
			require.Equal(t, bracketed(append([]string{cwd}, want...)...), c.roots(id), method)
			var sent struct{ AdditionalDirectories []string }
			require.NoError(t, json.Unmarshal([]byte(*params.Load()), &sent))
			require.Equal(t, want, sent.AdditionalDirectories, method)
		}
	}
}

// after sends a lifecycle request about a session in cwd and returns the session that it opens.
// additional is nil for a request without the field.
func (c *client) after(method, id, cwd string, additional []string) string {
	c.t.Helper()
	if method == "session/new" {
		id = ""
	}
	var result struct{ SessionID string }
	require.NoError(c.t,
		json.Unmarshal(c.call(method, rootsParams(id, cwd, additional...)), &result))
	if result.SessionID != "" {
		return result.SessionID
	}
	return id
}

// Clause A33.
func TestInvalidFolderNamesItsSetting(t *testing.T) {
	cwd, good := folder(t), folder(t)
	missing := filepath.Join(good, "missing")
	folders := []acp.Folder{{Path: good, Setting: "one"}}
	c := start(t, acp.Options{
		Folders:   func(workspace.Dir) []acp.Folder { return folders },
		Workspace: workspace.Options{MaxRoots: 3},
	})
	id := c.open(cwd, good)
	for what, f := range map[string]struct {
		folders []acp.Folder
		field   string
		reason  string
	}{
		"missing": {[]acp.Folder{{Path: good, Setting: "one"}, {Path: good, Setting: "two"},
			{Path: missing, Setting: "three"}}, "three", "missing"},
		"relative": {[]acp.Folder{{Path: good, Setting: "one"}, {Path: "x", Setting: "two"}}, "two",
			"relative"},
		"too many": {[]acp.Folder{{Path: good, Setting: "one"}, {Path: good + "/a", Setting: "one"},
			{Path: good + "/b", Setting: "two"}}, "one, two", "too_many"},
	} {
		t.Run(what, func(t *testing.T) {
			folders = f.folders
			for _, method := range []string{"session/new", "session/load", "session/resume",
				"session/fork"} {
				of := id
				if method == "session/new" {
					of = ""
				}
				m := c.try(method, rootsParams(of, cwd))
				require.NotNil(t, m.Error, method)
				require.Contains(t, m.Error.Message, f.field)
				var data struct {
					Violations []struct{ Field, Reason string }
				}
				require.NoError(t, json.Unmarshal(m.Error.Data, &data))
				require.Len(t, data.Violations, 1)
				require.Equal(t, f.field, data.Violations[0].Field)
				require.Equal(t, f.reason, data.Violations[0].Reason)
				require.Len(t, c.list(`{}`), 1, "no session was created")
				require.Equal(t, []string{good}, c.find(id).AdditionalDirectories)
			}
			// a list of the client does not depend on the setting
			c.call("session/resume", rootsParams(id, cwd, good))
		})
	}
}

// With KeepFolders a copy has what the user added to its source, and keeps it when it is opened
// again. Without, it says once what it has lost.
//
// Clauses A33 and A34.
func TestFoldersOfFork(t *testing.T) {
	for _, keep := range []bool{false, true} {
		c := start(t, acp.Options{KeepFolders: keep, ConsentDir: t.TempDir()})
		cwd, a, b := folder(t), folder(t), folder(t)
		source := c.open(cwd, a)
		c.permit("allow-once")
		require.Contains(t, c.say(source, "/roots add "+b), "Added")
		fork := c.after("session/fork", source, cwd, nil)
		want := []string{}
		if keep {
			want = []string{a, b}
		}
		require.Equal(t, want, c.find(fork).AdditionalDirectories)
		first := strings.Join(c.texts(fork, "say one"), "")
		for _, dir := range []string{a, b} {
			require.Equal(t, !keep, strings.Contains(first, dir), dir)
		}
		c.call("session/load", rootsParams(fork, cwd))
		c.texts(fork, "say two")
		require.Equal(t, want, c.find(fork).AdditionalDirectories)
		told := strings.Join(texts(c.messages(), fork), "")
		lost := 1
		if keep {
			lost = 0
		}
		require.Equal(t, lost, strings.Count(told, "This copy does not have"))
		require.NotContains(t, told, "no longer has")
	}
}

// Clause A34.
func TestDroppedFoldersAreReportedOnce(t *testing.T) {
	c := start(t, acp.Options{})
	cwd, a, b := folder(t), folder(t), folder(t)
	id := c.open(cwd, a, b)
	for _, method := range []string{"session/resume", "session/load", "session/load"} {
		c.call(method, rootsParams(id, cwd))
	}
	c.texts(id, "say one")
	c.call("session/load", rootsParams(id, cwd))
	c.texts(id, "say two")
	told := strings.Join(texts(c.messages(), id), "")
	require.Equal(t, 1, strings.Count(told, "no longer has"))
	require.Contains(t, told, a)
	require.Contains(t, told, b)
	c.call("session/load", rootsParams(id, cwd, a))
	c.call("session/load", rootsParams(id, cwd, []string{}...))
	require.Equal(t, 1, strings.Count(strings.Join(texts(c.messages(), id), ""), "no longer has"))
}

// A client that names no folders can open a session of which a stored folder cannot be opened any
// more. The session has the others, and says once what is missing and why.
//
// Clauses A6, A13, A33, A34.
func TestKeptFolderThatIsMissing(t *testing.T) {
	for what, spoil := range map[string]struct {
		do  func(t *testing.T, dir string)
		why string
	}{
		"deleted": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir))
		}, "which does not exist. "},
		"a file": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir))
			writeFile(t, dir, "")
		}, "which is not a folder. "},
	} {
		for _, method := range []string{"session/load", "session/resume", "session/fork"} {
			t.Run("A34/"+what+" "+method, func(t *testing.T) {
				r := &scripted{}
				c := start(t, acp.Options{Backend: using(r), KeepFolders: true,
					ConsentDir: t.TempDir()})
				c.permit("allow-once")
				cwd, kept, gone, added := folder(t), folder(t), folder(t), folder(t)
				id := c.open(cwd, gone, kept)
				c.texts(id, "say one")
				require.Contains(t, c.say(id, "/roots add "+added), "Added")
				c.call("session/close", idParams(id))
				spoil.do(t, gone)
				spoil.do(t, added)
				m := c.try(method, rootsParams(id, cwd, gone, kept))
				require.NotNil(t, m.Error, "A6: the client's own list")
				require.Equal(t, []string{gone, kept, added}, c.find(id).AdditionalDirectories)

				opened := c.after(method, id, cwd, nil)
				require.Equal(t, []string{kept}, c.find(opened).AdditionalDirectories)
				said := c.say(opened, "say two")
				for _, dir := range []string{gone, added} {
					require.Contains(t, said, "opened without the folder `"+dir+"`, "+spoil.why)
				}
				require.NotContains(t, said, "your editor")
				opened = c.after("session/load", opened, cwd, nil)
				require.NotContains(t, c.say(opened, "say three"), "opened without")
			})
		}
	}
}

// A folder that somebody names explicitly stays an error, whatever else is missing.
//
// Clauses A6, A33.
func TestMissingFoldersThatAreNamed(t *testing.T) {
	cwd, kept, configured := folder(t), folder(t), folder(t)
	c := start(t, acp.Options{KeepFolders: true, Folders: func(workspace.Dir) []acp.Folder {
		return []acp.Folder{{Path: configured, Setting: "--dir"}}
	}})
	id := c.open(cwd, kept, configured)
	c.texts(id, "say one")
	require.NoError(t, os.Remove(kept))
	require.NoError(t, os.Remove(configured))
	omitted := encode(map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}})
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		m := c.try(method, omitted)
		require.NotNil(t, m.Error)
		require.Contains(t, m.Error.Message, "--dir")
		require.NotContains(t, m.Error.Message, kept)
	}
	require.Equal(t, []string{kept, configured}, c.find(id).AdditionalDirectories)
}
