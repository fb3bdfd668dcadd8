package sandbox_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/terminal"
)

// policies are the modes, each with a directory.
func policies(t *testing.T) map[sandbox.Mode]sandbox.Policy {
	dir, binary := dirtest.New(t), filepath.Dir(proctest.Executable())
	return map[sandbox.Mode]sandbox.Policy{
		sandbox.Write:  {Mode: sandbox.Write, Write: []string{dir}},
		sandbox.Strict: {Mode: sandbox.Strict, Write: []string{dir}, Read: []string{binary}},
	}
}

// A restricted program does not type into the terminal that it shares with a shell, by whatever
// interface of system calls.
//
// Clause X8.
func TestChildDoesNotType(t *testing.T) {
	proctest.AsOrdinaryUser(t, t.Name())
	foreign := foreignTyper(t)
	for mode := range policies(t) {
		require.Empty(t, typed(t, mode, foreign), mode)
	}
}

// Without a sandbox a program types, or the test above would prove nothing.
func TestTypingWorks(t *testing.T) {
	if setting, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti"); err == nil && setting[0] == '0' {
		t.Skip("this kernel lets nobody type")
	}
	foreign, want := foreignTyper(t), "plain upper half by name "
	if foreign != "" {
		want += "E"
	}
	require.Equal(t, want, typed(t, sandbox.Off, foreign))
}

// typed returns what a shell reads from its terminal after a program in the mode has run there.
func typed(t *testing.T, mode sandbox.Mode, foreign string) string {
	t.Helper()
	person, program, err := terminal.Open()
	require.NoError(t, err)
	defer person.Close()
	defer program.Close()
	settings, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	settings.Lflag &^= unix.ICANON | unix.ECHO
	require.NoError(t, unix.IoctlSetTermios(int(program.Fd()), unix.TCSETS, settings))
	shell := child("shell", "TEST_MODE="+mode.String(), "TEST_FOREIGN="+foreign)
	shell.Stdin = program
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	text, err := shell.Output()
	require.NoError(t, err)
	return string(text)
}

// playShell runs a program that types, and prints what was typed.
func playShell() int {
	mode, err := sandbox.ParseMode(os.Getenv("TEST_MODE"))
	typer := child("type")
	typer.Stdin, typer.Stdout = os.Stdin, os.Stderr
	p := sandbox.Policy{Mode: mode, Read: []string{filepath.Dir(typer.Path),
		filepath.Dir(os.Getenv("TEST_FOREIGN"))}}
	if err = errors.Join(err, start(p, typer)); err == nil {
		err = typer.Wait()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := unix.SetNonblock(0, true); err != nil {
		return 1
	}
	text := make([]byte, 1<<10)
	if n, err := unix.Read(0, text); err == nil {
		fmt.Print(string(text[:n]))
	}
	return 0
}

// typeAll types a word in each way.
func typeAll() int {
	word := func(fd int, request uintptr, word string) {
		for i := range len(word) {
			letter := []byte{word[i]}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&letter[0])))
		}
	}
	word(0, unix.TIOCSTI, "plain ")
	word(0, unix.TIOCSTI|1<<32, "upper half ") // the kernel looks at the lower one
	if tty, err := unix.Open("/dev/tty", unix.O_RDWR, 0); err == nil {
		word(tty, unix.TIOCSTI, "by name ")
	}
	if foreign := os.Getenv("TEST_FOREIGN"); foreign != "" {
		cmd := exec.Command(foreign)
		cmd.Stdin = os.Stdin
		_ = cmd.Run()
	}
	return 0
}

// A restricted program neither makes nor removes subvolumes, which Landlock does not see.
//
// Clause X8.
func TestChildMakesNoSubvolumes(t *testing.T) {
	proctest.AsOrdinaryUser(t, t.Name())
	require.NotContains(t, output(t, sandbox.Policy{}, child("subvolumes")), unix.EPERM.Error())
	for mode, p := range policies(t) {
		require.Equal(t, strings.Repeat(unix.EPERM.Error()+"\n", 6), output(t, p, child("subvolumes")), mode)
	}
}

// trySubvolumes prints the errors of making and removing subvolumes in a directory that is not of
// btrfs.
func trySubvolumes() int {
	dir, err := unix.Open("/proc/self", unix.O_DIRECTORY, 0)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	const btrfs = 0x50009400
	for _, request := range []uintptr{1, 14, 15, 23, 24, 63} {
		var arguments [4096]byte
		_, err := call(unix.SYS_IOCTL, uintptr(dir), btrfs|request, uintptr(unsafe.Pointer(&arguments)))
		fmt.Println(err)
	}
	return 0
}

// foreignTyper returns a program for the 32-bit interface of the kernel that types a letter, or ""
// if it cannot be run.
func foreignTyper(t *testing.T) string {
	if runtime.GOARCH != "amd64" {
		return ""
	}
	const base, header = 0x10000, 52 + 32
	code := []byte{
		0x31, 0xdb, // xor ebx, ebx: standard input
		0xb9, 0x12, 0x54, 0, 0, // mov ecx, TIOCSTI
		0xba, (base + 1) & 0xff, base >> 8 & 0xff, base >> 16, 0, // mov edx, the letter E of the file
		0xb8, 54, 0, 0, 0, 0xcd, 0x80, // ioctl
		0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80, // exit(0)
	}
	size := uint32(header + len(code))
	file := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 15: 0}
	for _, part := range []any{
		uint16(2), uint16(3), uint32(1), uint32(base + header), uint32(52), uint32(0), uint32(0),
		uint16(52), uint16(32), uint16(1), uint16(40), uint16(0), uint16(0),
		uint32(1), uint32(0), uint32(base), uint32(base), size, size, uint32(5), uint32(0x1000),
	} {
		file, _ = binary.Append(file, binary.LittleEndian, part)
	}
	path := filepath.Join(dirtest.New(t), "foreign")
	openToAll(t, filepath.Dir(path))
	require.NoError(t, os.WriteFile(path, append(file, code...), 0o755))
	if err := exec.Command(path).Run(); err != nil {
		t.Logf("no programs for another interface: %v", err)
		return ""
	}
	return path
}

// objects are kernel objects outside the sandbox.
type objects struct {
	Key, Memory, Queue, Semaphore int
	Named                         string // a POSIX queue
}

// Arguments of calls for objects.
const (
	private, remove, status, value = 0, 0, 2, 12
	userOnly                       = 0o600 | unix.IPC_CREAT
	key                            = "acp-agent-test"
)

// A restricted program does not reach the keys of its user or the limits of other processes, nor
// shared memory, queues and semaphores, unless it is in mode write and we may make no namespaces.
//
// Clause X8.
func TestChildReachesNoObjects(t *testing.T) {
	proctest.AsOrdinaryUser(t, t.Name())
	o := makeObjects(t)
	env := fmt.Sprintf("TEST_OBJECTS=%d %d %d %d %s", o.Key, o.Memory, o.Queue, o.Semaphore, o.Named)
	const keys = "reading a key\nfinding a key\nrequesting a key\nadding a key\n"
	const others = "attaching memory\ninspecting memory\nmaking memory\ninspecting a queue\n" +
		"sending to a queue\na semaphore\na POSIX queue\n"
	require.Equal(t, keys+others+"limits of others\nown limits\n",
		output(t, sandbox.Policy{}, child("objects", env)))
	for mode, p := range policies(t) {
		want := "own limits\n"
		if own := "making memory\n"; proctest.Separable() {
			want = own + want
		} else if mode == sandbox.Write {
			want = others + want
		}
		require.Equal(t, want, output(t, p, child("objects", env)), mode)
	}
}

func makeObjects(t *testing.T) (o objects) {
	t.Helper()
	var err error
	o.Key, err = unix.AddKey("user", key, []byte("secret"), unix.KEY_SPEC_USER_KEYRING)
	require.NoError(t, err)
	make := func(number uintptr, arguments ...uintptr) int {
		result, err := call(number, arguments...)
		require.NoError(t, err)
		return int(result)
	}
	o.Memory = make(unix.SYS_SHMGET, private, 1, userOnly)
	o.Queue = make(unix.SYS_MSGGET, private, userOnly)
	o.Semaphore = make(unix.SYS_SEMGET, private, 1, userOnly)
	o.Named = fmt.Sprintf("%s-%d", key, os.Getpid())
	name, err := unix.BytePtrFromString(o.Named)
	require.NoError(t, err)
	require.NoError(t, unix.Close(make(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT, 0o600)))
	t.Cleanup(func() {
		_, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, o.Key, unix.KEY_SPEC_USER_KEYRING, 0, 0)
		_, _ = unix.SysvShmCtl(o.Memory, unix.IPC_RMID, nil)
		_, _ = call(unix.SYS_MSGCTL, uintptr(o.Queue), remove)
		_, _ = call(unix.SYS_SEMCTL, uintptr(o.Semaphore), 0, remove)
		_, _ = call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)))
	})
	return o
}

// call makes a system call with at most four arguments.
func call(number uintptr, arguments ...uintptr) (uintptr, error) {
	a := append(arguments, 0, 0, 0, 0)
	result, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return result, nil
}

// tryObjects prints what it can do with the objects.
func tryObjects() int {
	var o objects
	_, err := fmt.Sscan(os.Getenv("TEST_OBJECTS"), &o.Key, &o.Memory, &o.Queue, &o.Semaphore, &o.Named)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	try := func(what string, err error) {
		if err == nil {
			fmt.Println(what)
		}
	}
	text := make([]byte, 1<<10)
	_, err = unix.KeyctlBuffer(unix.KEYCTL_READ, o.Key, text, 0)
	try("reading a key", err)
	_, err = unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", key, 0)
	try("finding a key", err)
	_, err = unix.RequestKey("user", key, "", 0)
	try("requesting a key", err)
	planted, err := unix.AddKey("user", key+"-planted", []byte("x"), unix.KEY_SPEC_USER_KEYRING)
	try("adding a key", err)
	_, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, planted, unix.KEY_SPEC_USER_KEYRING, 0, 0)

	memory, queue, semaphore := uintptr(o.Memory), uintptr(o.Queue), uintptr(o.Semaphore)
	_, err = call(unix.SYS_SHMAT, memory)
	try("attaching memory", err)
	_, err = call(unix.SYS_SHMCTL, memory, status, uintptr(unsafe.Pointer(&text[0])))
	try("inspecting memory", err)
	made, err := call(unix.SYS_SHMGET, private, 1, userOnly)
	try("making memory", err)
	_, _ = call(unix.SYS_SHMCTL, made, remove)
	_, err = call(unix.SYS_MSGCTL, queue, status, uintptr(unsafe.Pointer(&text[0])))
	try("inspecting a queue", err)
	message := [2]uint64{1, 1}
	_, err = call(unix.SYS_MSGSND, queue, uintptr(unsafe.Pointer(&message)), 8, unix.IPC_NOWAIT)
	try("sending to a queue", err)
	_, err = call(unix.SYS_SEMCTL, semaphore, 0, value)
	try("a semaphore", err)
	name, _ := unix.BytePtrFromString(o.Named)
	_, err = call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDONLY)
	try("a POSIX queue", err)

	var limit unix.Rlimit
	err = unix.Prlimit(os.Getppid(), unix.RLIMIT_CORE, nil, &limit)
	if err == nil {
		err = unix.Prlimit(os.Getppid(), unix.RLIMIT_CORE, &limit, nil)
	}
	try("limits of others", err)
	try("own limits", unix.Prlimit(0, unix.RLIMIT_CORE, &limit, nil))
	return 0
}
