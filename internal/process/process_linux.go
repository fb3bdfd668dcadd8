package process

import "syscall"

// attributes make the child a group leader that the kernel kills when the thread that started it
// ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
