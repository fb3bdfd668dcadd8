package cli

import (
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// withoutLandlock is a command of the scripts: it runs another one as on a kernel without Landlock.
func withoutLandlock() {
	path, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = proctest.Deny(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS)
	}
	if err == nil {
		err = unix.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
