package process

import (
	"syscall"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// attributes make c a group leader that the kernel kills when the thread that started it ends. The
// thread that starts a command in the sandbox ends at once, so for such a command this is not set.
// In its own session a command cannot read from our terminal or type into it.
func attributes(c Command) *syscall.SysProcAttr {
	restricted := c.Sandbox.Mode != sandbox.Off
	a := &syscall.SysProcAttr{Setsid: restricted || c.Batch}
	a.Setpgid = !a.Setsid // the leader of a session leads a group
	if !restricted {
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}
