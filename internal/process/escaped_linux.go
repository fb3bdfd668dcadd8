package process

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// family recognizes the descendants of a child by an environment variable that only they inherit.
// It also finds those that left the group, by setsid or as a daemon. The name of the variable is
// unique, so that what an acp-agent starts below the child is found too. The zero family has no
// members.
type family struct{ variable string }

func newFamily() family { return family{"ACP_AGENT_CHILD_" + rand.Text() + "=1"} }

// env returns the environment variable that makes the child the first of the family.
func (f family) env() []string { return []string{f.variable} }

// signalOutside sends s to the members outside the process group pgid, and returns their ids.
func (f family) signalOutside(pgid int, s syscall.Signal) (ids []int) {
	if f.variable == "" {
		return nil
	}
	all, _ := os.ReadDir("/proc")
	for _, entry := range all {
		id, err := strconv.Atoi(entry.Name())
		if err != nil || !f.has(id) {
			continue
		}
		if group, err := syscall.Getpgid(id); err == nil && group != pgid && f.signal(id, s) {
			ids = append(ids, id)
		}
	}
	return ids
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
	// If the process behind the handle has not been waited for, its id was not reused meanwhile.
	return f.has(id) && p.Signal(syscall.Signal(0)) == nil && p.Signal(s) == nil
}

// has reports whether the process with this id is a member that has not ended. A process that has
// ended has no environment.
func (f family) has(id int) bool {
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id), "environ"))
	return err == nil && strings.Contains("\x00"+string(environ), "\x00"+f.variable+"\x00")
}
