//go:build unix && !linux

package process

import (
	"syscall"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// attributes make the child a group leader, and one in the sandbox or without a terminal the leader
// of a session, so that it cannot read from our terminal or type into it.
func attributes(c Command) *syscall.SysProcAttr {
	alone := c.Batch || c.Sandbox.Mode != sandbox.Off
	return &syscall.SysProcAttr{Setsid: alone, Setpgid: !alone}
}
