package fusetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"
)

// Disk is a file system with directories, which answers until it hangs. As most disks of macOS and
// Windows do, it keeps the spelling of names and ignores their case and normal form.
type Disk struct {
	device *os.File
	hangs  atomic.Bool
	dirs   []directory // the one at i has the number i+1
}

// directory is a directory of a disk.
type directory struct {
	name   string
	parent uint64
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
	fuseHeaderIn     = 40
	fuseHeaderOut    = 16
	fuseMinorVersion = 31
)

// Mount mounts a disk with the directories at these slash-separated paths at dir, or skips the test
// if that is not possible here. Calls that hang in the disk fail once the test has ended.
func Mount(t testing.TB, dir string, paths ...string) *Disk {
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
	d := &Disk{device: os.NewFile(uintptr(fd), "/dev/fuse"), dirs: make([]directory, 1)}
	for _, path := range paths {
		at := uint64(1)
		for name := range strings.SplitSeq(path, "/") {
			at = d.mkdir(at, name)
		}
	}
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

// Hang makes the disk answer nothing any more.
func (d *Disk) Hang() { d.hangs.Store(true) }

// mkdir returns the number of a directory, which it creates if it does not exist.
func (d *Disk) mkdir(parent uint64, name string) uint64 {
	if number := d.lookup(parent, name); number != 0 {
		return number
	}
	d.dirs = append(d.dirs, directory{name, parent})
	return uint64(len(d.dirs))
}

// lookup returns the number of a directory, 0 if it does not exist.
func (d *Disk) lookup(parent uint64, name string) uint64 {
	for i, dir := range d.dirs {
		if dir.parent == parent && fold(dir.name) == fold(name) {
			return uint64(i + 1)
		}
	}
	return 0
}

func fold(name string) string { return norm.NFD.String(strings.ToLower(name)) }

func (d *Disk) serve() {
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
		switch {
		case d.hangs.Load() && operation != fuseReleasedir, operation == fuseForget,
			operation == fuseBatchForget, operation == fuseInterrupt:
			continue
		}
		body, failure := d.answer(operation, binary.NativeEndian.Uint64(request[16:]),
			request[fuseHeaderIn:n])
		answer := make([]byte, fuseHeaderOut, fuseHeaderOut+len(body))
		binary.NativeEndian.PutUint32(answer, uint32(fuseHeaderOut+len(body)))
		binary.NativeEndian.PutUint32(answer[4:], uint32(-int32(failure)))
		copy(answer[8:], request[8:16]) // the request's number
		if _, err := d.device.Write(append(answer, body...)); err != nil &&
			!errors.Is(err, unix.ENOENT) {
			return
		}
	}
}

// answer returns the answer to an operation on a directory.
func (d *Disk) answer(operation uint32, dir uint64, request []byte) ([]byte, unix.Errno) {
	switch operation {
	case fuseInit:
		body := make([]byte, 64)
		binary.NativeEndian.PutUint32(body, 7)
		binary.NativeEndian.PutUint32(body[4:], fuseMinorVersion)
		binary.NativeEndian.PutUint32(body[20:], 1<<17) // the longest write
		return body, 0
	case fuseGetattr:
		return append(make([]byte, 16), attributes(dir)...), 0
	case fuseOpendir:
		return make([]byte, 16), 0
	case fuseReaddir:
		return d.list(dir, binary.NativeEndian.Uint64(request[8:])), 0
	case fuseReleasedir:
		return nil, 0
	case fuseLookup:
		name, _, _ := bytes.Cut(request, []byte{0})
		number := d.lookup(dir, string(name))
		if number == 0 {
			return nil, unix.ENOENT
		}
		body := make([]byte, 40)
		binary.NativeEndian.PutUint64(body, number)
		return append(body, attributes(number)...), 0
	}
	return nil, unix.ENOSYS
}

// attributes returns the attributes of a directory (struct fuse_attr).
func attributes(number uint64) []byte {
	body := make([]byte, 88)
	binary.NativeEndian.PutUint64(body, number)
	binary.NativeEndian.PutUint32(body[60:], unix.S_IFDIR|0o755)
	binary.NativeEndian.PutUint32(body[64:], 2) // links
	return body
}

// list returns the entries of a directory whose numbers are greater than after.
func (d *Disk) list(parent, after uint64) (body []byte) {
	for i, dir := range d.dirs {
		number := uint64(i + 1)
		if dir.parent != parent || number <= after {
			continue
		}
		body = binary.NativeEndian.AppendUint64(body, number)
		body = binary.NativeEndian.AppendUint64(body, number) // where the next listing continues
		body = binary.NativeEndian.AppendUint32(body, uint32(len(dir.name)))
		body = binary.NativeEndian.AppendUint32(body, unix.DT_DIR)
		body = append(body, dir.name...)
		body = append(body, make([]byte, -len(dir.name)&7)...)
	}
	return body
}
