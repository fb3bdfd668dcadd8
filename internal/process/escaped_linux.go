package process

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// awaitEnd waits until a child has ended, and leaves it a zombie: as long as that is not waited
// for, neither its id nor that of its group is reused.
func awaitEnd(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// isZombie reports whether a process has ended and was not waited for.
func isZombie(id int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id), "stat"))
	name := bytes.LastIndexByte(stat, ')')
	return err != nil || name < 0 || bytes.HasPrefix(stat[name:], []byte(") Z"))
}

// family recognizes the descendants of a child by an environment variable that only they inherit.
// It also finds those that left the group, by setsid or as a daemon. The name of the variable is
// unique, so that processes which another acp-agent below the child has started are found too. The
// zero family has no members.
type family struct{ variable string }

func newFamily() family { return family{"ACP_AGENT_CHILD_" + rand.Text() + "=1"} }

// env returns the environment variable that makes the child the first of the family.
func (f family) env() []string { return []string{f.variable} }

// remaining reports whether the group pgid has members that have not ended, and returns the ids of
// the family's members outside it.
func (f family) remaining(pgid int) (inGroup bool, outside []int) {
	var environ bytes.Buffer
	all, _ := os.ReadDir("/proc")
	for _, entry := range all {
		id, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // it is not a process
		}
		switch group, err := syscall.Getpgid(id); {
		case err != nil:
		case group == pgid:
			inGroup = inGroup || !isZombie(id)
		case f.isIn(id, &environ):
			outside = append(outside, id)
		}
	}
	return inGroup, outside
}

// signal sends s to a member. It reports whether there is still a member with this id. The id may
// have been reused since the caller looked, so a handle holds on to the process while it is
// examined. A kernel without such handles leaves the process running.
func (f family) signal(id int, s syscall.Signal) bool {
	p, err := os.FindProcess(id)
	if err != nil {
		return false
	}
	defer p.Release()
	if p.WithHandle(func(uintptr) {}) != nil {
		return false
	}
	// If the process behind the handle has not been waited for, its id cannot have been reused.
	return f.has(id) && p.Signal(syscall.Signal(0)) == nil && p.Signal(s) == nil
}

// has reports whether the process with this id is a member that has not ended.
func (f family) has(id int) bool { return f.isIn(id, new(bytes.Buffer)) }

// isIn is [family.has] with room for the environment, because looking for members reads those of
// all processes. A process that has ended has no environment.
func (f family) isIn(id int, environ *bytes.Buffer) bool {
	if f.variable == "" {
		return false
	}
	const patience = 20 // for a program with an empty environment
	for tries := 0; readEnviron(id, environ); tries++ {
		if environ.Len() > 1 || tries >= patience && !isStarting(id) {
			return bytes.Contains(environ.Bytes(), []byte("\x00"+f.variable+"\x00"))
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// readEnviron reads the environment of a process, with a zero byte before it. It reports whether
// that was possible.
func readEnviron(id int, environ *bytes.Buffer) bool {
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(id), "environ"))
	if err != nil {
		return false
	}
	defer file.Close()
	environ.Reset()
	environ.Grow(64 << 10) // one read gets all of it: the next could find another program
	_ = environ.WriteByte(0)
	_, err = environ.ReadFrom(file)
	return err == nil
}

// isStarting reports whether a process is replacing its program, which has no environment yet.
func isStarting(id int) bool {
	const envEnd = 48 // after the name, see proc_pid_stat(5)
	stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id), "stat"))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(fields) > envEnd && fields[envEnd] == "0"
}
