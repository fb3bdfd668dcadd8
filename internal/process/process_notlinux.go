//go:build unix && !linux

package process

import "syscall"

// attributes make the child a group leader, and a child without a terminal the leader of a session.
func attributes(c Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: c.Batch, Setpgid: !c.Batch}
}
