package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Two sessions work concurrently, each in its own folders, which contain the same word.
//
// Clause A22.
func TestSessionsAreSeparate(t *testing.T) {
	t.Parallel()
	dirs := make([][2]string, 2)
	for i := range dirs {
		for j := range dirs[i] {
			text := fmt.Sprintf("a tangerine of session %d\n", i)
			dirs[i][j] = folder(t, "notes.txt", text, "more/deep.txt", text)
		}
	}
	a := start(t).initialize()
	var sessions []string
	for _, d := range dirs {
		sessions = append(sessions, a.open(d[0], d[1]))
	}
	var turns sync.WaitGroup
	for i, id := range sessions {
		turns.Go(func() {
			foreign := filepath.Join(dirs[1-i][0], "notes.txt")
			for _, text := range []string{"/roots", "/search tangerine", "/find **/*.txt", "/read " + foreign} {
				m, err := a.Call(t.Context(), "session/prompt", promptParams(id, text))
				if err != nil || m.Error != nil {
					t.Errorf("%s: %v %s", text, err, m.Raw)
				}
			}
		})
	}
	turns.Wait()
	for i, id := range sessions {
		said := a.updates(0, id)
		require.NotContains(t, said, fmt.Sprintf("of session %d", 1-i))
		for j := range dirs[i] {
			require.Contains(t, said, filepath.Join(dirs[i][j], "more", "deep.txt"))
			require.NotContains(t, said, filepath.Join(dirs[1-i][j], "more", "deep.txt"))
		}
	}
}

// Two processes share one store, as with two windows of an editor.
//
// Clause S3.
func TestLastWindowOwnsSession(t *testing.T) {
	t.Parallel()
	state, cwd := filepath.Join(t.TempDir(), "state"), folder(t, "f.txt", "needle")
	first, second := startIn(t, state).initialize(), startIn(t, state).initialize()
	id := first.open(cwd)
	require.Equal(t, "end_turn", first.prompt(id, "/search needle"))
	opened := map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}}

	second.call("session/load", opened, nil)
	require.Contains(t, second.updates(0, id), "/search needle")
	m := first.try("session/prompt", promptParams(id, "/search lost"))
	require.NotNil(t, m.Error)
	require.Contains(t, m.Error.Message, "another window")
	require.Equal(t, "end_turn", second.prompt(id, "/roots"))

	from := len(first.Messages())
	first.call("session/load", opened, nil) // and back
	history := first.updates(from, id)
	require.Contains(t, history, "/roots")
	require.NotContains(t, history, "/search lost", "what was refused left no trace")
	require.NotNil(t, second.try("session/prompt", promptParams(id, "/roots")).Error)
	require.Equal(t, "end_turn", first.prompt(id, "/roots"))
}

// sessionsCommand runs acp-agent sessions and returns its standard output.
func sessionsCommand(t *testing.T, state string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(within(t), program.Path(), append([]string{"--state-dir", state, "sessions"}, args...)...)
	out, err := c.Output()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// A folder is renamed while a session in it is open in an editor.
//
// Clause A17.
func TestMoveFencesAndIsFoundAgain(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"alone": nil, "behind": behind()} {
		t.Run(name, func(t *testing.T) {
			state, parent, lib := filepath.Join(t.TempDir(), "state"), folder(t), folder(t)
			before, after := filepath.Join(parent, "before"), filepath.Join(parent, "after")
			require.NoError(t, os.Mkdir(before, 0o700))
			a := startIn(t, state, args...).initialize()
			id := a.open(before, lib)
			require.Equal(t, "end_turn", a.prompt(id, "say tangerine"))
			params := func(cwd string) map[string]any {
				return map[string]any{"sessionId": id, "cwd": cwd, "additionalDirectories": []string{lib}, "mcpServers": []any{}}
			}
			require.NoError(t, os.Rename(before, after))
			command := "acp-agent sessions move " + before + " "
			require.Contains(t, a.try("session/load", params(before)).Error.Message, command+"NEW-FOLDER")
			require.Contains(t, a.try("session/load", params(after)).Error.Message, command+after)
			require.NotContains(t, a.try("session/load", params(lib)).Error.Message, "NEW-FOLDER")
			require.Equal(t, []listed{{id, before, []string{lib}}}, a.list(nil), "nothing has changed")

			require.Contains(t, sessionsCommand(t, state, "move", before, after, "--yes"), "moved 1 session")
			m := a.try("session/prompt", promptParams(id, "say more"))
			require.NotNil(t, m.Error, "the window no longer owns the session")
			require.Contains(t, m.Error.Message, "load it again")
			require.Equal(t, []listed{{id, after, []string{lib}}}, a.list(nil))
			require.Equal(t, []listed{{id, after, []string{lib}}}, a.list(map[string]any{"cwd": after}))
			require.Contains(t, a.try("session/load", params(before)).Error.Message, "use "+after)
			from := len(a.Messages())
			a.call("session/load", params(after), nil)
			require.Contains(t, a.updates(from, id), "say tangerine")
			require.Equal(t, "end_turn", a.prompt(id, "say more"))
			require.NotContains(t, a.updates(0, id), "leads elsewhere")
		})
	}
}

// A conversation continues with another agent, which is told it, and without an agent.
//
// Clause A31.
func TestTransfer(t *testing.T) {
	t.Parallel()
	state, cwd, lib := filepath.Join(t.TempDir(), "state"), folder(t), folder(t)
	a := startIn(t, state, behind()...).initialize()
	id := a.open(cwd, lib)
	a.prompt(id, "say tangerine")
	original := a.list(nil)
	a.leave()
	shown := sessionsCommand(t, state, "show", "--json", id)

	other := filepath.Join(t.TempDir(), "other-agent")
	require.NoError(t, os.Symlink(proctest.Executable(), other))
	for name, to := range map[string][]string{"agent": {"--", other}, "explore": {"--to", "explore"}} {
		t.Run(name, func(t *testing.T) {
			args := to
			if name == "explore" {
				args = nil
			}
			b := startIn(t, state, args...).initialize()
			require.Empty(t, b.list(nil))
			params := map[string]any{"sessionId": id, "cwd": cwd, "additionalDirectories": []string{lib}, "mcpServers": []any{}}
			named := strings.Join(append([]string{"acp-agent sessions transfer", id}, to...), " ")
			require.Contains(t, b.try("session/load", params).Error.Message, strings.ReplaceAll(named, other, "PATH/"+filepath.Base(other)))

			copied := strings.TrimSpace(sessionsCommand(t, state, append([]string{"transfer", id}, to...)...))
			require.Equal(t, []listed{{copied, cwd, []string{lib}}}, b.list(nil))
			params["sessionId"] = copied
			from := len(b.Messages())
			b.call("session/load", params, nil)
			require.Contains(t, b.updates(from, copied), "tangerine")
			said := b.says(copied, "say more")
			if name == "agent" { // it says what it was told
				require.Contains(t, said, `user:\n\u003e say tangerine`)
			}
			b.leave()
		})
	}
	require.Equal(t, shown, sessionsCommand(t, state, "show", "--json", id))
	require.Equal(t, original, startIn(t, state, behind()...).initialize().list(nil))
}
