package acp_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/fusetest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
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
	c := start(t, acp.Options{}.With(acp.Tuning{RescanWait: time.Hour}))
	patiently := start(t, acp.Options{}.With(acp.Tuning{RescanWait: 10 * time.Millisecond}))
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
	c := start(t, acp.Options{})
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

// An agent in the sandbox may have changed the file that the editor's server runs. So the server
// that /mcp starts is in the same sandbox.
//
// Clause X5.
func TestMCPCommandStartsServersInTheAgentsSandbox(t *testing.T) {
	notOverRemote(t, namesServers)
	root, out := folder(t), folder(t)
	t.Setenv("TMPDIR", folder(t))
	script := filepath.Join(root, "server.sh")
	text := "#!/bin/sh\necho >" + root + "/started\necho >" + out + "/evil\nexec " + proctest.Executable()
	require.NoError(t, os.WriteFile(script, []byte(text), 0o700))
	s := server("ours", "files")
	s["command"] = script
	for _, own := range []backend.SandboxMode{backend.SandboxOff, backend.SandboxWrite} {
		r := &scripted{connects: true, sandbox: backend.Sandbox{Mode: backend.SandboxWrite}}
		c := served(t, acp.Options{Backend: using(r), MCPPolicy: func(string) mcp.Policy {
			return mcp.Policy{Sandbox: backend.Sandbox{Mode: own, Write: []string{out}}}
		}})
		id := c.serve([]string{root}, s)
		require.Contains(t, c.say(id, "/mcp tools"), "tool ours.where")
		require.FileExists(t, filepath.Join(root, "started"))
		require.NoFileExists(t, filepath.Join(out, "evil"))
	}
}

// Where a disk takes two spellings for one directory, so do lists, loads and joined sessions. Where
// it does not, they are two.
//
// Clause A17.
func TestSpellingsThatTheDiskTakesForOne(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	disk, plain := folder(t), folder(t)
	fusetest.Mount(t, disk, "Caf\u00e9/App", "Caf\u00e9/lib")
	c := start(t, acp.Options{})
	in := func(names ...string) string { return filepath.Join(append([]string{disk}, names...)...) }
	id := c.open(in("cafe\u0301", "app"), in("CAF\u00c9", "LIB"))
	for _, name := range []string{"Caf\u00e9", "cafe\u0301", "CAFE\u0301", "caf\u00c9"} {
		require.Equal(t, []string{id}, c.by(in(name, "aPP")), "%q", name)
		require.Len(t, c.list(encode(map[string]any{
			"additionalDirectories": []string{in(name, "Lib")}})), 1, "%q", name)
		c.call("session/load", rootsParams(id, in(name, "App"), in(name, "lib")))
		require.Equal(t, in("cafe\u0301", "app"), c.find(id).Cwd, "as it was first spelled")
	}
	require.Empty(t, c.by(in("Cafe", "App")), "this is another name")
	require.Empty(t, c.by(in("Caf\u00e9", "App", "x")), "what is missing has its text")

	for _, name := range []string{"App", "app"} {
		require.NoError(t, os.Mkdir(filepath.Join(plain, name), 0o700))
	}
	other := c.open(filepath.Join(plain, "App"))
	require.Equal(t, []string{other}, c.by(filepath.Join(plain, "App")))
	require.Empty(t, c.by(filepath.Join(plain, "app")))
}

// The folder of a subagent is exchanged for a link out of the session while it asks for a file in
// it.
//
// Clause X8.
func TestExchangedFolderOfARestrictedSubagent(t *testing.T) {
	root, out := dirtest.New(t, "d/x", "inside"), dirtest.New(t, "x", "s3cret")
	d, l := filepath.Join(root, "d"), filepath.Join(root, "l")
	require.NoError(t, os.Symlink(out, l))
	c := connect(t, acp.Options{Backend: using(&family{scripted: scripted{restricted: true}})})
	c.declaring(`{"subagents":{},"fs":{"readTextFile":true,"writeTextFile":true}}`)
	id := c.open(root)

	end := make(chan struct{})
	var exchanging sync.WaitGroup
	exchanging.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, l, unix.RENAME_EXCHANGE)
			}
		}
	})
	served := 0
	for i := range 300 {
		method := []string{"read", "write"}[i%2]
		got := c.texts(id, "ask "+d+" fs/"+method+"_text_file "+
			encode(map[string]string{"path": filepath.Join(d, "x"), "content": "inside"}))[0]
		require.NotContains(t, got, "s3cret")
		if got == `{"content":"inside"}` || got == "{}" {
			served++
		}
	}
	close(end)
	exchanging.Wait()
	require.Positive(t, served)
	text, err := os.ReadFile(filepath.Join(out, "x"))
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(text))
}
