package acp_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
)

// disk is a file system with an empty directory, which answers until it hangs.
type disk struct {
	device *os.File
	hangs  atomic.Bool
}

// Operations of FUSE (linux/fuse.h).
const (
	fuseLookup       = 1
	fuseForget       = 2
	fuseGetattr      = 3
	fuseInit         = 26
	fuseOpendir      = 27
	fuseReaddir      = 28
	fuseReleasedir   = 29
	fuseInterrupt    = 36
	fuseBatchForget  = 42
	fuseReaddirplus  = 44
	fuseHeaderIn     = 40
	fuseHeaderOut    = 16
	fuseMinorVersion = 31
)

// mountDisk mounts a disk at dir. Calls that hang in it fail once the test has ended.
func mountDisk(t *testing.T, dir string) *disk {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		err = unix.Mount("disk", dir, "fuse", 0,
			fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOENT) ||
		errors.Is(err, unix.ENODEV) {
		t.Skip("a FUSE file system cannot be mounted here: ", err)
	}
	require.NoError(t, err)
	d := &disk{device: os.NewFile(uintptr(fd), "/dev/fuse")}
	served := make(chan struct{})
	go func() {
		defer close(served)
		d.serve()
	}()
	t.Cleanup(func() {
		_ = d.device.Close()
		<-served
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	})
	return d
}

func (d *disk) serve() {
	request := make([]byte, 1<<20)
	for {
		n, err := d.device.Read(request)
		if errors.Is(err, unix.ENOENT) { // the request was interrupted
			continue
		}
		if err != nil || n < fuseHeaderIn {
			return
		}
		operation := binary.NativeEndian.Uint32(request[4:])
		if d.hangs.Load() && operation != fuseReleasedir {
			continue
		}
		var body []byte
		failure := int32(0)
		switch operation {
		case fuseForget, fuseBatchForget, fuseInterrupt:
			continue
		case fuseInit:
			body = make([]byte, 64)
			binary.NativeEndian.PutUint32(body, 7)
			binary.NativeEndian.PutUint32(body[4:], fuseMinorVersion)
			binary.NativeEndian.PutUint32(body[20:], 1<<17) // the longest write
		case fuseGetattr:
			body = make([]byte, 104)
			binary.NativeEndian.PutUint64(body[16:], 1)                  // inode
			binary.NativeEndian.PutUint32(body[76:], unix.S_IFDIR|0o755) // mode
			binary.NativeEndian.PutUint32(body[80:], 2)                  // links
		case fuseOpendir:
			body = make([]byte, 16)
		case fuseReaddir, fuseReaddirplus, fuseReleasedir:
		case fuseLookup:
			failure = -int32(unix.ENOENT)
		default:
			failure = -int32(unix.ENOSYS)
		}
		answer := make([]byte, fuseHeaderOut, fuseHeaderOut+len(body))
		binary.NativeEndian.PutUint32(answer, uint32(fuseHeaderOut+len(body)))
		binary.NativeEndian.PutUint32(answer[4:], uint32(failure))
		copy(answer[8:], request[8:16]) // the request's number
		if _, err := d.device.Write(append(answer, body...)); err != nil &&
			!errors.Is(err, unix.ENOENT) {
			return
		}
	}
}

// Clause W6.
func TestHungDisk(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	good, far := folder(t), filepath.Join(folder(t), "far")
	require.NoError(t, os.Mkdir(far, 0o700))
	spelled := filepath.Join(folder(t), "spelled")
	require.NoError(t, os.Symlink(far, spelled))
	d := mountDisk(t, far)
	c := connect(t, acp.Options{}.With(acp.Tuning{RescanWait: time.Hour}))
	patiently := connect(t, acp.Options{}.With(acp.Tuning{RescanWait: 10 * time.Millisecond}))
	c.initialize()
	patiently.initialize()
	id, inFar := c.open(good, far), c.open(far)
	other := patiently.open(good, far)
	require.Equal(t, []string{"x"}, c.texts(id, "say x"))
	d.hangs.Store(true)

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
