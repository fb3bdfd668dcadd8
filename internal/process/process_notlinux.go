//go:build unix && !linux

package process

import "syscall"

// attributes make the child a group leader.
func attributes(Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
