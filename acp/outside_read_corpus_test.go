//go:build linux || darwin

package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/workspace"
)

// An agent asks for every path of the containment corpus through the client. If the user says no,
// it learns nothing from outside. If the user says yes to everything, it learns the files that the
// user saw, and none that is denied.
//
// Clauses P4, A26, C3.
func TestContainmentCorpusThroughClient(t *testing.T) {
	for _, corpus := range containmenttest.Cases(t, "../testdata/containment") {
		t.Run(corpus.Name, func(t *testing.T) {
			corpus.Skip(t)
			stage := corpus.Stage(t)
			t.Cleanup(stage.Clear)
			c := start(t, acp.Options{Workspace: workspace.Options{
				Policy: workspace.Policy{Deny: dirs(t, stage.Denied()...)}}})
			option := ""
			c.answer(func(m message) string {
				if m.Method == "fs/read_text_file" {
					return `{"content":"of the editor"}`
				}
				return `{"outcome":{"outcome":"selected","optionId":"` + option + `"}}`
			})
			roots := stage.Roots()
			id := c.open(roots[0], roots[1:]...)
			stage.Open(t)
			for _, option = range []string{"reject-once", "allow-once"} {
				for _, attempt := range corpus.Attempts {
					path := stage.Path(attempt)
					if !filepath.IsAbs(path) {
						path = roots[0] + "/" + path
					}
					before := len(c.questions())
					answer := c.readFile(id, path)
					questions := c.questions()[before:]
					if option == "reject-once" || len(questions) == 0 {
						stage.RequireContained(t, answer, path)
						continue
					}
					require.Equal(t, content(t, shownPath(t, questions[0]), stage.Denied()), answer)
				}
			}
		})
	}
}

func dirs(t *testing.T, paths ...string) (all []workspace.Dir) {
	t.Helper()
	for _, path := range paths {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		all = append(all, dir)
	}
	return all
}

// shownPath returns the first path in a question.
func shownPath(t *testing.T, question message) string {
	t.Helper()
	var p struct {
		ToolCall struct {
			Content []struct{ Content struct{ Text string } }
		}
	}
	require.NoError(t, json.Unmarshal(question.Params, &p))
	shown := regexp.MustCompile("(?s)```\n(.*?)\n```").FindStringSubmatch(
		p.ToolCall.Content[0].Content.Text)
	require.NotNil(t, shown)
	return shown[1]
}

// content returns what an agent is told that reads a file, which must not be denied nor be found by
// a link.
func content(t *testing.T, path string, denied []string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	require.NoError(t, err)
	require.Equal(t, path, real)
	for _, dir := range denied {
		require.False(t, strings.HasPrefix(path, dir+"/"), path)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return encode(map[string]string{"content": string(text)}) + " <nil>"
}
