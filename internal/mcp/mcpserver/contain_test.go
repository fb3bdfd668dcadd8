//go:build linux || darwin

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// wired is a tool, and the operation of the containment corpus whose verdicts apply to it.
type wired struct {
	tool, as string
	more     map[string]any
}

var wiredTools = []wired{
	{"read_file", "text", nil},
	{"read_file", "text", map[string]any{"tail": 5}},
	{"read_files", "text", nil},
	{"read_media", "read", nil},
	{"list_directory", "list", nil},
	{"directory_tree", "list", map[string]any{"ignored": "include",
		"exclude": []string{"nothing"}}},
	{"file_info", "stat", nil},
	{"find_files", "search", map[string]any{"ignored": "include"}},
	{"search", "search", map[string]any{"pattern": "(?s).", "ignored": "include"}},
	{"write_file", "write", map[string]any{"content": "WRITTEN"}},
	{"edit_file", "write", map[string]any{"old_text": "/", "new_text": "-", "replace_all": true}},
	{"edit_file", "write", map[string]any{"edits": []any{map[string]any{"old_text": "/",
		"new_text": "-", "replace_all": true}}, "dry_run": true}},
	{"create_directory", "mkdir", nil},
	{"delete_file", "remove", nil},
	{"move_file", "rename-from", map[string]any{"to": "moved by the test"}},
}

// arguments returns the arguments of a call with a path.
func (w wired) arguments(path string) string {
	arguments := map[string]any{"path": path}
	if w.tool == "read_files" {
		arguments = map[string]any{"paths": []string{path}}
	}
	maps.Copy(arguments, w.more)
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // cannot happen: strings and numbers
	}
	return string(text)
}

// verdict returns the expected result of an attempt.
func (w wired) verdict(a containmenttest.Attempt) string {
	want := a.Verdict(w.as)
	switch {
	case w.as == "search" && want == "notdir": // it takes a file too
		return a.Verdict("read")
	case (w.tool == "edit_file" || w.tool == "read_media") && want == "ok": // if it has anything to be replaced or shown
		return "any"
	case (w.tool == "write_file" || w.tool == "create_directory") && want == "missing":
		return "any" // what is missing may be the directories, which it creates
	case w.more["dry_run"] == true && want == "permission": // only writing needs it
		return "any"
	default:
		return want
	}
}

// refusals are regular expressions for the error texts of the verdicts.
var refusals = map[string]string{
	"outside": "is outside the session's folders",
	"denied":  "is refused by policy",
	"special": "not a regular file",
	"missing": "no such file or directory|was replaced after the session started",
	"loop":    "more than 40 links",
}

func (w wired) requireVerdict(t *testing.T, answer message, a containmenttest.Attempt,
	said string) {
	t.Helper()
	text, want := answer.text(), w.verdict(a)
	failed := strings.HasPrefix(text, "error: ") || answer.Error != nil
	switch {
	case want == "any":
	case want == "ok":
		require.False(t, failed, "%s: %s", said, text)
	default:
		require.True(t, failed, "%s: want %s, got %s", said, want, text)
		require.Regexp(t, refusals[want], text, said)
	}
}

// Every tool that takes a path makes attempts of the corpus in testdata/containment: with few, a
// third of them, in each case and line others. Package workspace makes all with every operation.
func TestContainmentCorpus(t *testing.T) {
	turns := volume.Of(3, 1)
	for _, c := range containmenttest.Cases(t, "../../../testdata/containment") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Skip(t)
			p, s := playground(t, c)
			listed := func() string { return p.ask("list_roots", "{}").text() }
			roots := listed()
			for i, a := range c.Attempts {
				path := s.Path(a)
				if !utf8.ValidString(path) {
					continue // no JSON holds it
				}
				for j, w := range wiredTools {
					if (i+j)%turns != 0 {
						continue
					}
					said := fmt.Sprintf("line %d: %s %.80q", a.Line, w.tool, path)
					answer := p.ask(w.tool, w.arguments(s.Path(a)))
					s.RequireContained(t, answer.line, said)
					w.requireVerdict(t, answer, a, said)
					if s.Changed() {
						require.Equal(t, roots, listed(), "%s: the roots have changed", said)
						s.Clear()
						p, s = playground(t, c)
						roots = listed()
						path = s.Path(a)
					}
				}
				require.Equal(t, roots, listed(), "line %d: the roots have changed", a.Line)
			}
			s.Clear()
		})
	}
}

// playground serves the roots of a case of the corpus.
func playground(t *testing.T, c containmenttest.Case) (*peer, *containmenttest.Stage) {
	t.Helper()
	s := c.Stage(t)
	o := Options{Roots: rootSet(t, s.Roots()...)}
	for _, path := range s.Denied() {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		o.Workspace.Policy.Deny = append(o.Workspace.Policy.Deny, dir)
	}
	p := serveWriting(t, o, s.Within)
	s.Open(t)
	return p, s
}

// serveWriting serves a client and permits harmless changes. The test fails if permission is asked
// for any other.
func serveWriting(t *testing.T, o Options, harmless func(path string) bool) *peer {
	t.Helper()
	var harm atomic.Pointer[string]
	o.Permit = func(_ context.Context, c tools.Change) error {
		for _, dir := range c.Parents {
			if !harmless(dir.Path()) {
				return errors.New("this would do harm")
			}
		}
		if harmless(c.Asked) && harmless(c.Ref.Path()) &&
			(c.Kind != tools.Move || harmless(c.AskedTo) && harmless(c.To.Path())) {
			return nil
		}
		what := fmt.Sprintf("%q, which supposedly leads to %q", c.Asked, c.Ref.Path())
		harm.Store(&what)
		return errors.New("this would do harm")
	}
	p := start(t, o)
	t.Cleanup(func() {
		if what := harm.Load(); what != nil {
			t.Errorf("somebody was asked to permit a change outside: %s", *what)
		}
	})
	p.begin(withoutRoots)
	return p
}
