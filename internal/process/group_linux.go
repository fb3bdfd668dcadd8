package process

import "golang.org/x/sys/unix"

// lifeline makes the kernel kill a process group when our process ends, however it ends. It is a
// pipe, and only we have its ends. When the write end is closed, the owner of the read end, which
// is the group, is sent a signal.
//
// When a process ends, Linux releases its files beginning with the highest descriptor. So the write
// end has a higher one than the read end, which is still open when the signal is sent.
type lifeline struct{ read, write int }

// newLifeline returns a lifeline of the group pgid. If the system does not support that, as in some
// sandboxes, the lifeline does nothing.
func newLifeline(pgid int) lifeline {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return lifeline{-1, -1}
	}
	read := pipe[0]
	write, err := unix.FcntlInt(uintptr(pipe[1]), unix.F_DUPFD_CLOEXEC, read+1)
	_ = unix.Close(pipe[1])
	if err != nil {
		_ = unix.Close(read)
		return lifeline{-1, -1}
	}
	for _, set := range []struct{ command, value int }{
		{unix.F_SETOWN, -pgid},
		{unix.F_SETSIG, int(unix.SIGKILL)},
		{unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK},
	} {
		if _, err := unix.FcntlInt(uintptr(read), set.command, set.value); err != nil {
			break
		}
	}
	return lifeline{read, write}
}

// close ends the lifeline without killing anything: the read end goes first.
func (l lifeline) close() {
	_ = unix.Close(l.read)
	_ = unix.Close(l.write)
}
