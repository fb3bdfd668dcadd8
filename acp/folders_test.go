package acp_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/workspace"
)

// folderCase is a lifecycle request, and what its folders can come from. The zero value is a new session with nothing at all.
type folderCase struct {
	method     string
	client     []string // nil if the client sends no list
	configured []string
	stored     []string // of the session that the request names
	keep       bool
}

func (f folderCase) String() string {
	return fmt.Sprintf("%s: client %q, configured %q, stored %q, keep %v", f.method, f.client, f.configured, f.stored, f.keep)
}

// want is the model: the folders that the session has after the request.
func (f folderCase) want() []string {
	reopens := f.method == "session/load" || f.method == "session/resume"
	switch {
	case f.client != nil:
		return f.client
	case reopens && f.keep:
		return f.stored
	default:
		return f.configured
	}
}

// dropped returns the folders that the user is told about.
func (f folderCase) dropped() []string {
	if f.client != nil || f.method == "session/new" || f.method == "session/fork" {
		return nil
	}
	var dropped []string
	for _, path := range f.stored {
		if !slices.Contains(f.want(), path) {
			dropped = append(dropped, path)
		}
	}
	return dropped
}

func TestA33_EffectiveFolders(t *testing.T) {
	cwd, a, b, d := folder(t), folder(t), folder(t), folder(t)
	for _, keep := range []bool{false, true} {
		var configured atomic.Pointer[[]string]
		var params atomic.Pointer[string]
		r := &scripted{opened: func(a backend.Activation, _ backend.Host) {
			p := string(a.Params)
			params.Store(&p)
		}}
		c := connect(t, acp.Options{
			Backend:     func() backend.Backend { return r },
			KeepFolders: keep,
			Folders: func(asked workspace.Dir) (folders []acp.Folder) {
				require.Equal(t, cwd, asked.String())
				for _, path := range *configured.Load() {
					folders = append(folders, acp.Folder{Path: path, Setting: "a setting"})
				}
				return folders
			},
		})
		c.initialize()
		for _, method := range []string{"session/new", "session/load", "session/resume", "session/fork"} {
			for _, client := range [][]string{nil, {}, {a}, {b, a}} {
				for _, set := range [][]string{{}, {b}, {d, a}} {
					for _, stored := range [][]string{{}, {a}, {b, d}} {
						f := folderCase{method: method, client: client, configured: set, stored: stored, keep: keep}
						configured.Store(&set)
						id := c.open(cwd, append([]string{}, stored...)...)
						before := len(c.messages())
						id = c.after(method, id, cwd, client)
						require.Equal(t, f.want(), c.find(id).AdditionalDirectories, f)
						all := "[" + strings.Join(append([]string{cwd}, f.want()...), ", ") + "]"
						require.Contains(t, c.texts(id, "roots"), all, f)
						var sent struct{ AdditionalDirectories []string }
						require.NoError(t, json.Unmarshal([]byte(*params.Load()), &sent))
						require.ElementsMatch(t, f.want(), sent.AdditionalDirectories, "what the backend is given: %v", f)
						told := strings.Join(texts(c.messages()[before:], id), "")
						require.Equal(t, len(f.dropped()) > 0, strings.Contains(told, "no longer has"), "%v: %s", f, told)
						for _, path := range f.dropped() {
							require.Contains(t, told, path, f)
						}
					}
				}
			}
		}
	}
}

// after sends a lifecycle request about a session in cwd and returns the session that it opens. additional is nil for a request
// without the field.
func (c *client) after(method, id, cwd string, additional []string) string {
	c.t.Helper()
	if method == "session/new" {
		id = ""
	}
	var result struct{ SessionID string }
	require.NoError(c.t, json.Unmarshal(c.call(method, rootsParams(id, cwd, additional...)), &result))
	if result.SessionID != "" {
		return result.SessionID
	}
	return id
}

func TestA33_InvalidFolderNamesItsSetting(t *testing.T) {
	cwd, good := folder(t), folder(t)
	missing := filepath.Join(good, "missing")
	folders := []acp.Folder{{Path: good, Setting: "one"}}
	c := connect(t, acp.Options{
		Folders:   func(workspace.Dir) []acp.Folder { return folders },
		Workspace: workspace.Options{MaxRoots: 3},
	})
	c.initialize()
	id := c.open(cwd, good)
	for what, f := range map[string]struct {
		folders []acp.Folder
		field   string
		reason  string
	}{
		"missing":  {[]acp.Folder{{Path: good, Setting: "one"}, {Path: good, Setting: "two"}, {Path: missing, Setting: "three"}}, "three", "missing"},
		"relative": {[]acp.Folder{{Path: good, Setting: "one"}, {Path: "x", Setting: "two"}}, "two", "relative"},
		"too many": {[]acp.Folder{{Path: good, Setting: "one"}, {Path: good + "/a", Setting: "one"}, {Path: good + "/b", Setting: "two"}}, "one, two", "too_many"},
	} {
		t.Run(what, func(t *testing.T) {
			folders = f.folders
			for _, method := range []string{"session/new", "session/load", "session/resume", "session/fork"} {
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
			c.call("session/resume", rootsParams(id, cwd, good)) // a list of the client does not depend on the setting
		})
	}
}

func TestA34_DroppedFoldersAreReportedOnce(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	cwd, a, b := folder(t), folder(t), folder(t)
	id := c.open(cwd, a, b)
	for _, method := range []string{"session/resume", "session/load", "session/load"} {
		c.call(method, rootsParams(id, cwd))
	}
	told := strings.Join(texts(c.messages(), id), "")
	require.Equal(t, 1, strings.Count(told, "no longer has"))
	require.Equal(t, 1, strings.Count(strings.TrimSpace(told), "\n")+1, "it is one line")
	require.Contains(t, told, a)
	require.Contains(t, told, b)
	c.call("session/load", rootsParams(id, cwd, a))
	c.call("session/load", rootsParams(id, cwd, []string{}...))
	require.Equal(t, 1, strings.Count(strings.Join(texts(c.messages(), id), ""), "no longer has"))
}
