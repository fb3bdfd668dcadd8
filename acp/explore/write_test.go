package explore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

const edited = "\ntwo\n=======\n2"

// Clause A30.
func TestAllowedChange(t *testing.T) {
	old := "one\ntwo\nthree\n"
	for name, c := range map[string]struct {
		ask, path string
		old       *string
		new       string
		line      int
		says      string
	}{
		"a new file": {"/write new.txt\nfirst\n\n  second", "new.txt", nil,
			"first\n\n  second\n", 0, "new.txt`, 3 lines."},
		"another content": {"/write a.txt\none\nx\n", "a.txt", &old, "one\nx\n", 2,
			"a.txt`, 2 lines."},
		"an edit": {"/edit a.txt" + edited, "a.txt", &old, "one\n2\nthree\n", 2,
			"a.txt`, 3 lines."},
	} {
		t.Run(name, func(t *testing.T) {
			cwd := plant(t, fileTree{"a.txt": old})
			talk := open(t, limits{}, cwd)
			talk.client.onAsk = func(ctx context.Context, q question) (backend.Raw, error) {
				require.Equal(t, fileTree{"a.txt": old}, files(t, cwd), "nothing is written before")
				return selected("allow-once")(ctx, q)
			}
			a := talk.ask(c.ask)
			require.Equal(t, "end_turn", a.stop)
			want := fileTree{"a.txt": old}
			want[c.path] = c.new
			require.Equal(t, want, files(t, cwd))
			require.Equal(t, []sdk.ToolCallStatus{sdk.ToolCallStatusPending,
				sdk.ToolCallStatusInProgress, sdk.ToolCallStatusCompleted}, a.statuses())
			require.Contains(t, a.text(), c.says)

			require.Equal(t, []sdk.ToolCallStatus{sdk.ToolCallStatusInProgress, sdk.ToolCallStatusCompleted}, talk.client.committed)

			path := filepath.Join(cwd, c.path)
			place := []location{{Path: path, Line: c.line}}
			last := a.last(t)
			require.Equal(t, place, last.Places)
			require.Equal(t, []shown{{"diff", path, c.old, c.new}}, last.diffs(t))

			require.Len(t, talk.client.asked, 1)
			q := talk.client.asked[0]
			require.Equal(t, a.updates[0].ID, q.ToolCall.ID)
			require.Equal(t, sdk.ToolCallStatusPending, q.ToolCall.Status)
			require.Equal(t, sdk.ToolKindEdit, q.ToolCall.Tool)
			require.Equal(t, place, q.ToolCall.Places)
			require.Equal(t, []shown{{"diff", path, c.old, c.new}}, q.ToolCall.diffs(t))
			var kinds []string
			for _, option := range q.Options {
				kinds = append(kinds, option["kind"])
			}
			require.Equal(t, []string{"allow_once", "reject_once"}, kinds)
		})
	}
}

// Clause A30.
func TestRejectedChange(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(context.Context, question) (backend.Raw, error)
		stop   string
	}{
		"rejected":       {selected("reject-once"), "end_turn"},
		"unknown option": {selected("allow_once"), "end_turn"},
		"no option":      {selected(""), "end_turn"},
		"cancelled":      {raw(`{"outcome":{"outcome":"cancelled"}}`), "cancelled"},
		"unknown outcome": {raw(`{"outcome":{"outcome":"maybe","optionId":"allow-once"}}`),
			"end_turn"},
		"no outcome":    {raw(`{}`), "end_turn"},
		"null":          {raw(`null`), "end_turn"},
		"not an object": {raw(`["allow-once"]`), "end_turn"},
		"an error": {func(context.Context, question) (backend.Raw, error) {
			return nil, errors.New("boom")
		}, "end_turn"},
		"no client": {nil, "end_turn"},
	} {
		for _, ask := range []string{"/write a.txt\nx", "/write new.txt\nx", "/edit a.txt" +
			edited} {
			t.Run(name+" "+ask[:12], func(t *testing.T) {
				planted := fileTree{"a.txt": "one\ntwo\n"}
				cwd := plant(t, planted)
				talk := open(t, limits{}, cwd)
				talk.client.onAsk = c.answer
				a := talk.ask(ask)
				require.Equal(t, c.stop, a.stop)
				require.Len(t, talk.client.asked, 1)
				require.Equal(t, planted, files(t, cwd))
				require.Equal(t, []sdk.ToolCallStatus{sdk.ToolCallStatusPending,
					sdk.ToolCallStatusFailed}, a.statuses())
				require.Contains(t, a.last(t).text(), "Nothing was written")
			})
		}
	}
}

// Clause A30.
func TestCancelledChange(t *testing.T) {
	planted := fileTree{"a.txt": "one\ntwo\n"}
	for name, answered := range map[string]bool{"before the answer": false,
		"with the answer": true} {
		t.Run(name, func(t *testing.T) {
			cwd := plant(t, planted)
			talk := open(t, limits{}, cwd)
			ctx, cancel := context.WithCancelCause(t.Context())
			talk.client.onAsk = func(_ context.Context, q question) (backend.Raw, error) {
				cancel(backend.ErrCancelled)
				if answered {
					return selected("allow-once")(ctx, q)
				}
				return nil, context.Cause(ctx)
			}
			a := talk.prompt(ctx, blocks("/edit a.txt"+edited))
			require.Equal(t, "cancelled", a.stop)
			require.Equal(t, planted, files(t, cwd))
		})
	}
}

// Clause C11.
func TestRequestShowsResolvedPath(t *testing.T) {
	top := plant(t, fileTree{"app/a.txt": "one\n", "lib/b.txt": "one\ntwo\n"})
	symlink(t, filepath.Join(top, "lib"), top, "spelled")
	spelled := filepath.Join(top, "spelled")
	symlink(t, filepath.Join(top, "lib", "b.txt"), top, "app/link")
	talk := open(t, limits{}, filepath.Join(top, "app"), spelled)
	talk.client.onAsk = selected("allow-once")
	a := talk.ask("/edit link" + edited)

	resolved := filepath.Join(spelled, "b.txt")
	q := talk.client.asked[0].ToolCall
	require.Equal(t, "Edit b.txt in folder "+spelled, q.Title)
	require.Equal(t, map[string]any{"path": "link", "resolvedPath": resolved, "root": spelled},
		q.RawInput)
	require.Equal(t, resolved, q.diffs(t)[0].Path)
	require.Equal(t, []location{{Path: resolved, Line: 2}}, a.last(t).Places)
	require.Equal(t, q.Title, a.updates[0].Title)
	require.Equal(t, fileTree{"app/a.txt": "one\n", "lib/b.txt": "one\n2\n"}, files(t, top))
}

// Clause E2.
func TestRequestSaysWhatIsLost(t *testing.T) {
	top := plant(t, fileTree{"app/a.txt": "one\ntwo\n"})
	path := filepath.Join(top, "app", "a.txt")
	require.NoError(t, os.Link(path, filepath.Join(top, "other")))
	talk := open(t, limits{}, filepath.Join(top, "app"))
	talk.client.onAsk = selected("allow-once")
	for _, ask := range []string{"/edit a.txt" + edited, "/write a.txt\nx"} {
		talk.client.asked = nil
		talk.ask(ask)
		linked := ask != "/write a.txt\nx" // until it has been replaced
		require.Equal(t, linked, strings.HasSuffix(talk.client.asked[0].ToolCall.Title,
			"in folder "+filepath.Join(top, "app")+", which has other names (hard links) that keep "+
				"the old content"))
	}
}

// An edit is made in the text that the file has then, if nobody else has changed its lines.
//
// Clause E1.
func TestEditOfAFileThatChanges(t *testing.T) {
	top := plant(t, fileTree{"a.txt": "one\ntwo\nthree\n"})
	talk := open(t, limits{}, top)
	talk.client.onAsk = after(t, func() {
		require.NoError(t, os.WriteFile(filepath.Join(top, "a.txt"), []byte("0\ntwo\n!"), 0o600))
	})
	a := talk.ask("/edit a.txt" + edited)
	require.Contains(t, a.text(), "Wrote `")
	require.Equal(t, fileTree{"a.txt": "0\n2\n!"}, files(t, top))
	require.Equal(t, "0\n2\n!", a.last(t).diffs(t)[0].NewText)
}

// Clause C11.
func TestPathIsCheckedAgain(t *testing.T) {
	relink := func(target string) func(*testing.T, string) {
		return func(t *testing.T, top string) {
			require.NoError(t, os.Remove(filepath.Join(top, "app/l")))
			symlink(t, filepath.Join(top, filepath.FromSlash(target)), top, "app/l")
		}
	}
	put := func(path, content string) func(*testing.T, string) {
		return func(t *testing.T, top string) {
			require.NoError(t,
				os.WriteFile(filepath.Join(top, filepath.FromSlash(path)), []byte(content), 0o600))
		}
	}
	remove := func(t *testing.T, top string) {
		require.NoError(t, os.Remove(filepath.Join(top, "app", "d", "a.txt")))
	}
	for name, c := range map[string]struct {
		ask  string
		do   func(t *testing.T, top string)
		says string
	}{
		"link to another root": {"/edit l/a.txt" + edited, relink("lib"), "now; it led to"},
		"link out": {"/edit l/a.txt" + edited, relink("out"),
			"outside the session's folders"},
		"link out, a new file": {"/write l/new\nx", relink("out"),
			"outside the session's folders"},
		"link to another, new file": {"/write l/new\nx", relink("lib"), "now; it led to"},
		"changed": {"/edit l/a.txt" + edited, put("app/d/a.txt", "one\ntwo!\n"),
			"has changed"},
		"changed, same size": {"/write l/a.txt\nx", put("app/d/a.txt", "one\nTWO\n"),
			"has changed"},
		"made": {"/write l/new\nx", put("app/d/new", "theirs"), "has changed"},
		"gone": {"/edit l/a.txt" + edited, remove, "has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "one\ntwo\n"
			top := plant(t, fileTree{"app/d/a.txt": text, "lib/a.txt": text, "out/a.txt": text})
			symlink(t, filepath.Join(top, "app", "d"), top, "app/l")
			talk := open(t, limits{}, filepath.Join(top, "app"), filepath.Join(top, "lib"))
			var then fileTree
			talk.client.onAsk = after(t, func() {
				c.do(t, top)
				then = files(t, top)
			})
			a := talk.ask(c.ask)
			require.Equal(t, "end_turn", a.stop)
			require.Equal(t, then, files(t, top))
			require.Equal(t, []sdk.ToolCallStatus{sdk.ToolCallStatusPending,
				sdk.ToolCallStatusInProgress, sdk.ToolCallStatusFailed}, a.statuses())
			require.Contains(t, a.text(), c.says)
		})
	}
}

// Clause C11.
func TestOutsideTheRoots(t *testing.T) {
	top := plant(t, fileTree{"app/a.txt": "one\ntwo\n", "out/a.txt": "one\ntwo\n",
		"app-evil/a.txt": "one\ntwo\n"})
	out := filepath.Join(top, "out")
	symlink(t, out, top, "app/dir")
	symlink(t, filepath.Join(out, "a.txt"), top, "app/file")
	symlink(t, filepath.Join(out, "new"), top, "app/dangling")
	before := files(t, top)
	talk := open(t, limits{}, filepath.Join(top, "app"))
	talk.client.onAsk = selected("allow-once")
	for _, path := range []string{
		"../out/a.txt", "../out/new", filepath.Join(out, "a.txt"), "dir/a.txt", "dir/new", "file",
		"dangling",
		"../app-evil/a.txt", "dir/../app/a.txt", "/etc/passwd",
	} {
		for _, ask := range []string{"/write " + path + "\nx", "/edit " + path + edited} {
			a := talk.ask(ask)
			require.Equal(t, []sdk.ToolCallStatus{sdk.ToolCallStatusPending,
				sdk.ToolCallStatusFailed}, a.statuses(), ask)
			require.Contains(t, a.text(), "is outside the session's folders", ask)
			require.Empty(t, a.last(t).Places)
		}
	}
	require.Empty(t, talk.client.asked)
	require.Equal(t, before, files(t, top))
}

// Clause A20.
func TestWriteRelativePath(t *testing.T) {
	cwd, lib := plant(t, fileTree{"a": ""}), plant(t, fileTree{"sub/b.txt": "two\n"})
	talk := open(t, limits{}, cwd, lib)
	talk.client.onAsk = selected("allow-once")
	require.Contains(t, talk.ask("/write sub/b.txt\nx").text(),
		"There is no directory for `sub/b.txt`")
	require.Contains(t, talk.ask("/edit sub/b.txt"+edited).text(),
		"Did you mean `/edit "+filepath.Join(lib, "sub", "b.txt")+"`?")
	require.Empty(t, talk.client.asked)
	talk.ask("/write b.txt\nx")
	talk.ask("/write " + filepath.Join(lib, "c.txt") + "\nx")
	require.Equal(t, fileTree{"a": "", "b.txt": "x\n"}, files(t, cwd))
	require.Equal(t, fileTree{"sub/b.txt": "two\n", "c.txt": "x\n"}, files(t, lib))
}

func TestImpossibleChanges(t *testing.T) {
	planted := fileTree{
		"a.txt": "one\ntwo\nthree\n", "twice": "two\ntwo\n", "binary": "two\n\x00",
		"large": strings.Repeat("two\n", 50), "d/e": "",
	}
	cwd := plant(t, planted)
	talk := open(t, limits{fileSize: 100}, cwd)
	talk.client.onAsk = selected("allow-once")
	for ask, says := range map[string]string{
		"/edit missing" + edited: "There is no file `missing`",
		"/edit d/e" + edited:     "does not contain the old text",
		"/edit twice" +
			edited: "contains the old text 2 times, first on lines 1 and 2",
		"/edit binary" + edited:                     "`binary` is not a text file",
		"/edit large" + edited:                      "too large: the limit is 100 bytes",
		"/write a.txt\n" + strings.Repeat("x", 100): "too large",
		"/write d\nx":                               "`d` is a directory",
		"/write a.txt/b\nx":                         "Cannot change `a.txt/b`: not a directory",
		"/write no/a.txt\nx":                        "There is no directory for",
	} {
		a := talk.ask(ask)
		require.Equal(t, "end_turn", a.stop)
		require.Contains(t, a.text(), says, ask)
		require.Equal(t, []sdk.ToolCallStatus{sdk.ToolCallStatusPending, sdk.ToolCallStatusFailed},
			a.statuses(), ask)
	}
	same := talk.ask("/write a.txt\none\ntwo\nthree\n")
	require.Contains(t, same.text(), "already has this content")
	require.Equal(t, []sdk.ToolCallStatus{sdk.ToolCallStatusPending, sdk.ToolCallStatusCompleted},
		same.statuses())

	several := talk.prompt(t.Context(), blocks("/write a.txt\nsee ", "file:///a"))
	require.Contains(t, several.text(), "as one text")
	require.Empty(t, several.statuses())
	require.Empty(t, talk.client.asked)
	require.Equal(t, planted, files(t, cwd))
}

// White space of other kinds is part of a name.
//
// Clause C9.
func TestWritePathWithOtherSpaces(t *testing.T) {
	cwd := plant(t, fileTree{"a.txt": "old\n"})
	c := open(t, limits{}, cwd)
	c.client.onAsk = selected("allow-once")
	c.ask("/write \u202fa.txt\nnarrow")
	c.ask("/write a.txt\u00a0 \r\nwide")
	c.ask("/write\u00a0b.txt\ncommand")
	require.Equal(t, fileTree{"a.txt": "old\n", "\u202fa.txt": "narrow\n", "a.txt\u00a0": "wide\n",
		"b.txt": "command\n"}, files(t, cwd))
	require.Contains(t, c.ask("/read \u202fa.txt").text(), "narrow")
	require.Contains(t, c.ask("/read a.txt\u00a0 \r\n").text(), "wide")
	require.Contains(t, c.ask("\u00a0/read\u00a0b.txt").text(), "command")
}

func TestWritePathWithSpaces(t *testing.T) {
	cwd := plant(t, fileTree{"a": ""})
	talk := open(t, limits{}, cwd)
	talk.client.onAsk = selected("allow-once")
	talk.ask("  \n/write  my file.txt \r\n\n  text\n")
	require.Equal(t, fileTree{"a": "", "my file.txt": "\n  text\n"}, files(t, cwd))
}
