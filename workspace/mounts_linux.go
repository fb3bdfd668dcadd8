package workspace

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPoints are where something is mounted now, of all that this process can see; none where the
// system does not say.
func mountPoints() []location {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var points []location
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, locate(unescaped(fields[4])))
		}
	}
	return points
}

// unescaped is a path in the form of the mount table, where "\040" is a space.
func unescaped(path string) string {
	var out strings.Builder
	for {
		plain, rest, escaped := strings.Cut(path, `\`)
		out.WriteString(plain)
		if !escaped {
			return out.String()
		}
		path = rest
		if len(rest) >= 3 {
			if c, err := strconv.ParseUint(rest[:3], 8, 8); err == nil {
				out.WriteByte(byte(c))
				path = rest[3:]
				continue
			}
		}
		out.WriteByte('\\')
	}
}

// linksMislead reports whether the links in h lead elsewhere than they say, as those of /proc do.
func (h *handle) linksMislead() (bool, error) {
	var fs unix.Statfs_t
	err := h.do(".", func(fd int) error { return unix.Fstatfs(fd, &fs) })
	return int64(fs.Type) == unix.PROC_SUPER_MAGIC, err
}
