package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// usersOf returns the processes of the user that work in a directory or have something in it open,
// as acp-agent has the folders of its sessions. It returns at most five.
func usersOf(dir string) (users []string) {
	const most = 5
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		if process == "/proc/"+strconv.Itoa(os.Getpid()) || !uses(process, dir) {
			continue
		}
		name, _ := os.ReadFile(process + "/comm")
		users = append(users, fmt.Sprintf("%s (process %s)",
			text.Line(strings.TrimSpace(string(name)), 50), filepath.Base(process)))
		if len(users) == most {
			break
		}
	}
	return users
}

// uses reports whether the process at a path in /proc uses a directory.
func uses(process, dir string) bool {
	links, _ := filepath.Glob(process + "/fd/*")
	links = append(links, process+"/cwd", process+"/root")
	return slices.ContainsFunc(links, func(link string) bool {
		path, err := os.Readlink(link)
		return err == nil && (path == dir || strings.HasPrefix(path, dir+"/"))
	})
}
