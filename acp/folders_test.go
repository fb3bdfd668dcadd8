package acp_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// folderCase is a lifecycle request, and what the folders of its session can come from.
type folderCase struct {
	method     string
	client     []string // nil if the client sends no list
	configured []string
	stored     []string // of the session that the request names
	added      []string // to that session with /roots add
	always     bool     // for all sessions in its cwd
	keep       bool
}

func (f folderCase) String() string {
	return fmt.Sprintf("%s: client %q, configured %q, stored %q, added %q, always %v, keep %v",
		f.method, f.client, f.configured, f.stored, f.added, f.always, f.keep)
}

// had is the model of the folders that the session had before.
func (f folderCase) had() []string { return union(f.stored, f.added) }

// want is the model of those that it has after the request.
func (f folderCase) want() []string {
	reopens := f.method == "session/load" || f.method == "session/resume"
	switch {
	case f.client != nil:
		return f.client
	case f.keep && f.method != "session/new":
		return f.had()
	case reopens || f.always:
		return union(f.configured, f.added)
	default:
		return f.configured
	}
}

// dropped returns the folders that the user is told about.
func (f folderCase) dropped() []string {
	if f.client != nil || f.method == "session/new" {
		return nil
	}
	return slices.DeleteFunc(f.had(), func(path string) bool {
		return slices.Contains(f.want(), path)
	})
}

func union(a, b []string) []string {
	all := append([]string{}, a...)
	for _, path := range b {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// folderCases yields a third of all combinations, with the folders a, b, d and e: every combination
// of all but one of configured, stored and added, with each method and client, is among them. With
// few, it yields a third of these, which has every combination of any two values.
func folderCases(keep bool, a, b, d, e string) iter.Seq[folderCase] {
	few, k := volume.Of(1, 0) == 1, 0
	if keep {
		k = 1
	}
	adds := []folderCase{{}, {added: []string{e}}, {added: []string{e}, always: true}}
	return func(yield func(folderCase) bool) {
		for m, method := range []string{"session/new", "session/load", "session/resume",
			"session/fork"} {
			for n, client := range [][]string{nil, {}, {a}, {b, a}} {
				for i, configured := range [][]string{{}, {b}, {e, a}} {
					for j, stored := range [][]string{{}, {a}, {b, d}} {
						if few && (n+i+2*j+k)%3 != 0 {
							continue
						}
						added := adds[(m+n+i+j)%len(adds)]
						if !yield(folderCase{method, client, configured, stored, added.added,
							added.always, keep}) {
							return
						}
					}
				}
			}
		}
	}
}

// Clause A33.
func TestEffectiveFolders(t *testing.T) {
	a, b, d, e := folder(t), folder(t), folder(t), folder(t)
	var cases [2][]folderCase
	for i, keep := range []bool{false, true} {
		cases[i] = slices.Collect(folderCases(keep, a, b, d, e))
	}
	for some := range slices.Chunk(slices.Concat(cases[0], cases[1]), len(cases[0])/8) {
		testFolders(t, some)
	}
}

// testFolders tests cases that are alike in keep.
func testFolders(t *testing.T, cases []folderCase) {
	t.Helper()
	var configured atomic.Pointer[[]string]
	var params atomic.Pointer[string]
	r := &scripted{opened: func(a backend.Activation, _ backend.Host) {
		p := string(a.Params)
		params.Store(&p)
	}}
	c := start(t, acp.Options{
		Backend:     using(r),
		KeepFolders: cases[0].keep,
		ConsentDir:  t.TempDir(),
		Folders: func(workspace.Dir) (folders []acp.Folder) {
			for _, path := range *configured.Load() {
				folders = append(folders, acp.Folder{Path: path, Setting: "a setting"})
			}
			return folders
		},
	})
	for _, f := range cases {
		configured.Store(&f.configured)
		cwd := folder(t)
		id := c.open(cwd, append([]string{}, f.stored...)...)
		if f.added != nil {
			c.permit("allow-once")
			if f.always {
				c.permit("allow-always")
			}
			require.Contains(t, c.say(id, "/roots add "+f.added[0]), "Added")
			require.Equal(t, f.had(), c.find(id).AdditionalDirectories, f)
		}
		before := len(c.messages())
		id = c.after(f.method, id, cwd, f.client)
		require.Equal(t, f.want(), c.find(id).AdditionalDirectories, f)
		require.Equal(t, bracketed(append([]string{cwd}, f.want()...)...), c.roots(id), f)
		var sent struct{ AdditionalDirectories []string }
		require.NoError(t, json.Unmarshal([]byte(*params.Load()), &sent))
		require.ElementsMatch(t, f.want(), sent.AdditionalDirectories,
			"what the backend is given: %v", f)
		told := strings.Join(texts(c.messages()[before:], id), "")
		phrase := "no longer has"
		if f.method == "session/fork" {
			phrase = "This copy does not have"
		}
		require.Equal(t, len(f.dropped()) > 0, strings.Contains(told, phrase), "%v: %s", f, told)
		for _, path := range f.dropped() {
			require.Contains(t, told, path, f)
		}
	}
	c.leave()
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
