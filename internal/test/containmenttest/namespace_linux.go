package containmenttest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// InNamespace runs the test again in a process with its own user and mount namespace, where it may
// mount file systems. It returns true in that process; in the other the test should return.
func InNamespace(t *testing.T) bool {
	t.Helper()
	const inside = "CONTAINMENT_TEST_NAMESPACE"
	if os.Getenv(inside) != "" {
		require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	output, err := cmd.CombinedOutput()
	for _, refusal := range []error{syscall.EPERM, syscall.ENOSPC, syscall.EINVAL, syscall.ENOSYS} {
		if errors.Is(err, refusal) {
			t.Skip("this system does not permit a user namespace:", err)
		}
	}
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "--- PASS: "+t.Name())
	t.Logf("%s", output)
	return false
}
