package acp_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
)

// editing returns a backend that changes a file as soon as it gets a prompt.
func editing(file string) *scripted {
	return &scripted{prompted: func(context.Context, backend.Raw, backend.Updates) backend.Work {
		_ = os.WriteFile(file, []byte("of the agent\n"), 0o600)
		return nil
	}}
}

// tracked makes a repository with a file that is not committed.
func tracked(t *testing.T) (dir, file string) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir = folder(t)
	require.NoError(t, exec.CommandContext(t.Context(), "git", "-C", dir, "init", "-q").Run())
	file = filepath.Join(dir, "file.txt")
	require.NoError(t, os.WriteFile(file, []byte("unsaved\n"), 0o600))
	return dir, file
}

// The snapshot comes before the first change of the agent, once, and goes with the session.
func TestDiffCommand(t *testing.T) {
	dir, file := tracked(t)
	state := t.TempDir()
	c := start(t, acp.Options{Backend: using(editing(file)), SnapshotDir: state})
	plain := folder(t)
	id := c.open(dir, plain)
	require.Contains(t, c.say(id, "/diff"), "nothing was noted of it when the session began")
	c.say(id, "say hello")
	shown := c.say(id, "/diff")
	require.Contains(t, shown, "1 file, +1 -1 since ")
	require.Contains(t, shown, "- `file.txt` +1 -1\n")
	require.Contains(t, shown, "**`"+plain+"`**: nothing changed, as tool calls reported: it is in no git repository")
	c.say(id, `update {"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit","kind":"edit",`+
		`"status":"completed","locations":[{"path":`+encode(file)+`},{"path":`+encode(plain+"/new")+`}]}`)
	shown = c.say(id, "/diff")
	require.Contains(t, shown, "- `file.txt` +1 -1, changed by this session\n")
	require.Contains(t, shown, "- `new` +0 -0, changed by this session\n")
	c.call("session/delete", idParams(id))
	left, err := os.ReadDir(state)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A folder that is too large delays no prompt, and what is in it then is not taken for what was.
func TestDiffWithoutASnapshot(t *testing.T) {
	dir, file := tracked(t)
	o := acp.Options{Backend: using(editing(file)), SnapshotDir: t.TempDir()}
	c := start(t, o.With(acp.Tuning{SnapshotWait: time.Nanosecond}))
	id := c.open(dir)
	c.say(id, "say hello")
	require.Contains(t, c.say(id, "/diff"), "nothing changed, as tool calls reported")
}

// Folders of users on other machines are not theirs, so nothing of them is copied.
func TestNoSnapshotsForRemotePeers(t *testing.T) {
	dir, file := tracked(t)
	state := t.TempDir()
	s, _ := lasting(t, dir, acp.ServerOptions{},
		acp.Options{Backend: using(editing(file)), SnapshotDir: state})
	c := connectTo(t, s, acp.Peer{Principal: "ann", Remote: true})
	c.initialize()
	id := c.open(dir)
	c.say(id, "say hello")
	require.Contains(t, c.say(id, "/diff"), "nothing changed, as tool calls reported")
	left, err := os.ReadDir(state)
	require.NoError(t, err)
	require.Empty(t, left)
}
