package acp_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/fusetest"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Clause W6.
func TestHungDisk(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	good, far := folder(t), filepath.Join(folder(t), "far")
	require.NoError(t, os.Mkdir(far, 0o700))
	spelled := filepath.Join(folder(t), "spelled")
	require.NoError(t, os.Symlink(far, spelled))
	d := fusetest.Mount(t, far)
	c := connect(t, acp.Options{}.With(acp.Tuning{RescanWait: time.Hour}))
	patiently := connect(t, acp.Options{}.With(acp.Tuning{RescanWait: 10 * time.Millisecond}))
	c.initialize()
	patiently.initialize()
	id, inFar := c.open(good, far), c.open(far)
	other := patiently.open(good, far)
	require.Equal(t, []string{"x"}, c.texts(id, "say x"))
	d.Hang()

	for range 3 {
		prompt, line := c.request("session/prompt", promptParams(id, "say y"))
		c.send(line, notification("session/cancel", idParams(id)))
		require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	}
	for method, params := range map[string]string{
		"session/new": rootsParams("", good, far), "session/fork": rootsParams(id, good, far),
		"session/load": rootsParams(id, good, far), "session/resume": rootsParams(inFar, spelled),
		"session/list": encode(map[string]any{"cwd": spelled}),
	} {
		request, line := c.request(method, params)
		c.send(line, notification("$/cancel_request", `{"requestId":`+request+`}`))
		require.Equal(t, jsonrpc.CodeCancelled, c.response(request).Error.Code, method)
	}
	require.Equal(t, []string{"z"}, patiently.texts(other, "say z"),
		"a prompt goes on with what was found before")
	c.call("session/load", rootsParams(id, good, []string{}...))
	require.Equal(t, []string{"here"}, c.texts(id, "say here"), "without the disk that hangs")
}

// An editor that opens a FIFO hangs, and one that opens a device reads what is no file.
//
// Clause C13.
func TestSpecialFiles(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	root := folder(t)
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	id := c.open(root)
	for _, method := range []string{"fs/read_text_file", "fs/write_text_file"} {
		answer := c.texts(id,
			"call "+method+" "+encode(map[string]string{"path": filepath.Join(root, "fifo")}))[0]
		require.Contains(t, answer, "is a fifo, not a regular file")
	}
	answer := c.texts(id,
		"call terminal/create "+encode(
			map[string]string{"command": "x", "cwd": filepath.Join(root, "fifo")}))[0]
	require.Contains(t, answer, "not a directory")
	for _, m := range c.messages() {
		require.NotContains(t, m.Method, "fs/")
	}
}
