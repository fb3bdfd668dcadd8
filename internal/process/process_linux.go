package process

import (
	"syscall"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// attributes make c a group leader that the kernel kills when the thread that started it ends. The
// thread that starts a command in the sandbox ends at once. Instead of that, such a command gets a
// session of its own: it cannot type into our terminal.
func attributes(c Command) *syscall.SysProcAttr {
	if c.Sandbox.Mode != sandbox.Off {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
