package proctest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const deniedVariable = "ACP_AGENT_TEST_WITHOUT_LANDLOCK"

// WithoutLandlock runs a test in a process for which, and for whose children, the kernel has no
// Landlock. It reports whether it did so; otherwise it is called in that process, and the caller
// should run the test itself.
func WithoutLandlock(t *testing.T) bool {
	t.Helper()
	if os.Getenv(deniedVariable) != "" {
		require.NoError(t, Deny(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS))
		return false
	}
	again := exec.CommandContext(t.Context(), Executable(), "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	again.Env = append(os.Environ(), deniedVariable+"=1")
	output, err := again.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "--- PASS: "+t.Name())
	return true
}

// Deny has a system call fail in this process and its children, for good.
func Deny(call uint32, errno syscall.Errno) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if failed != 0 {
		return failed
	}
	return nil
}

// Separable reports whether this process may make namespaces for its children.
func Separable() bool {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWIPC}
	return cmd.Run() == nil
}
