package sandbox_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attack is what the child of a test is told to try.
type attack struct {
	Inside string   // a directory in which it may write
	Paths  []string // what to attack; relative ones start in its working directory
}

// strikeAll waits for the attack on stdin, tries every system call on every path, and prints what
// it could read.
func strikeAll() int {
	var a attack
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i, path := range a.Paths {
		aliases := []string{path}
		if filepath.IsAbs(path) {
			aliases = append(aliases, "/proc/self/root"+path,
				fmt.Sprintf("/proc/%d/root%s", os.Getppid(), path))
		} else {
			aliases = append(aliases, "/proc/self/cwd/"+path)
		}
		for j, alias := range aliases {
			strike(alias, filepath.Join(a.Inside, fmt.Sprintf("attack-%d-%d", i, j)))
		}
	}
	inNamespaces(a.Paths)
	fmt.Println("done")
	return 0
}

// strike tries to read path, and then every system call that changes something there. own is a free
// name in a directory where everything is allowed.
func strike(path, own string) {
	const at = unix.AT_FDCWD
	read := func(path string) {
		if text, err := readAny(path); err == nil {
			fmt.Printf("%q\n", text)
		}
	}
	read(path)
	read(path + "/secret")
	reopen(path, read)

	opening := []int{unix.O_WRONLY, unix.O_RDWR | unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT,
		unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, unix.O_WRONLY | unix.O_APPEND,
		unix.O_RDWR | unix.O_TMPFILE, unix.O_RDONLY | unix.O_TRUNC}
	for _, target := range []string{path, path + "/new"} {
		for _, flags := range opening {
			fd, err := unix.Open(target, flags|unix.O_NONBLOCK, 0o600)
			if err != nil {
				continue
			}
			_, _ = unix.Write(fd, []byte("attacked"))
			_ = unix.Ftruncate(fd, 1)
			_ = unix.Fallocate(fd, 0, 0, 1<<10)
			_ = unix.Linkat(at, "/proc/self/fd/"+strconv.Itoa(fd), at, target+"-linked",
				unix.AT_SYMLINK_FOLLOW)
			_ = unix.Close(fd)
		}
		_ = unix.Truncate(target, 0)
		_ = unix.Mkdir(target+"-dir", 0o700)
		for _, kind := range []uint32{unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR,
			unix.S_IFBLK} {
			_ = unix.Mknod(target+"-node", kind|0o600, int(unix.Mkdev(1, 5)))
			_ = unix.Unlink(target + "-node")
		}
		_ = unix.Symlink("/", target+"-link")
		if listener, err := net.Listen("unix", target+"-s"); err == nil {
			_ = listener.Close()
		}
		overwrite(own)
		_ = unix.Link(own, target+"-hard")
		_ = unix.Link(target, own+"-hard")
		overwrite(own + "-hard")
		_ = unix.Renameat2(at, own, at, target, unix.RENAME_EXCHANGE)
		_ = unix.Renameat2(at, own, at, target, unix.RENAME_NOREPLACE)
		_ = unix.Rename(target, own+"-moved")
		_ = unix.Rename(own, target)
		_ = unix.Unlink(target)
		_ = unix.Rmdir(target)
	}
	_ = unix.Acct(path)
	_ = unix.Mount(path, filepath.Dir(own), "", unix.MS_BIND, "")
	_ = unix.Unshare(unix.CLONE_NEWNS)
	_ = unix.PivotRoot(filepath.Dir(own), filepath.Dir(own))
}

// inNamespaces attacks paths as root of a user namespace, where it has every capability.
func inNamespaces(paths []string) {
	script := `for p; do
		mount --bind / "$p"; test -p "$p" && continue
		echo attacked >"$p/new"; echo attacked >"$p"; cat "$p"; cat "$p/secret"
	done`
	args := append([]string{"sh", "-c", script, "sh"}, paths...)
	p, err := os.StartProcess("/bin/sh", args, &os.ProcAttr{
		Files: []*os.File{nil, os.Stdout, nil},
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, Setsid: true,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}},
	})
	if err == nil {
		_, _ = p.Wait()
	}
}

// overwrite writes a file, and never blocks.
func overwrite(path string) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err == nil {
		_, _ = file.WriteString("attacked")
		_ = file.Close()
	}
}

// readAny reads a file or lists a directory, and never blocks.
func readAny(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		names, err := file.Readdirnames(100)
		return strings.Join(names, " "), err
	}
	text, err := io.ReadAll(io.LimitReader(file, 1<<10))
	return string(text), err
}

// reopen gets a descriptor without rights, and uses it as another way to the same place.
func reopen(path string, read func(string)) {
	fd, err := unix.Open(path, unix.O_PATH, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	again := "/proc/self/fd/" + strconv.Itoa(fd)
	read(again)
	read(again + "/secret")
	for _, flags := range []int{unix.O_WRONLY, unix.O_WRONLY | unix.O_TRUNC} {
		if file, err := os.OpenFile(again, flags|unix.O_NONBLOCK, 0); err == nil {
			_, _ = file.WriteString("attacked")
			_ = file.Close()
		}
	}
	overwrite(again + "/new")
	handle, mount, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return
	}
	_ = mount
	if file, err := unix.OpenByHandleAt(unix.AT_FDCWD, handle, unix.O_RDWR|unix.O_NONBLOCK); err == nil {
		_, _ = unix.Write(file, []byte("attacked"))
		_ = unix.Close(file)
	}
}

// lastingly tries an attack for a while, and returns the error of the first one that failed.
func lastingly(attack func() error) (err error) {
	for end := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(end); {
		if err = attack(); err == nil {
			time.Sleep(time.Millisecond)
		}
	}
	return err
}

// strikeParent tries to get at the process that started this one, and prints what worked.
func strikeParent() int {
	parent := os.Getppid()
	proc := fmt.Sprintf("/proc/%d/", parent)
	try := func(what string, err error) {
		if err == nil {
			fmt.Println(what)
		}
	}
	_, err := os.ReadFile(proc + "environ")
	try("environ", err)
	for _, link := range []string{"root", "cwd", "fd/0"} {
		_, err = os.Readlink(proc + link)
		try(link, err)
	}
	threads, _ := os.ReadDir(proc + "task")
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		file, err := os.OpenFile(proc+"task/"+thread.Name()+"/mem", os.O_RDWR, 0)
		try("memory of a thread", err)
		_ = file.Close()
		try("tracing a thread", unix.PtraceSeize(id))
		try("signalling a thread", lastingly(func() error { return unix.Tgkill(parent, id, 0) }))
	}
	pidfd, err := unix.PidfdOpen(parent, 0)
	if err == nil {
		_, err = unix.PidfdGetfd(pidfd, 0, 0)
		try("a file", err)
	}
	local := make([]byte, 8)
	remote := []unix.RemoteIovec{{Base: 1 << 22, Len: 8}}
	_, err = unix.ProcessVMReadv(parent, []unix.Iovec{{Base: &local[0], Len: 8}}, remote, 0)
	try("reading memory", err)
	try("a signal", unix.Kill(parent, 0))
	return 0
}
