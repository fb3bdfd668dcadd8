package workspace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// Mounts says which mounts below a root belong to the root. A root that is itself a mount point is
// always reached. A later mount over a root is not seen.
type Mounts string

const (
	// ExistingMounts includes the mounts that exist when the workspace is opened, such as the
	// node_modules of a development container. It is the default.
	ExistingMounts Mounts = "existing"
	// NoMounts restricts a root to the file system in which it lies.
	NoMounts Mounts = "none"
	// AnyMounts also includes later mounts. Then whoever can mount something below a root decides
	// what is read there.
	AnyMounts Mounts = "any"
)

// MarshalText returns the policy as flags and settings spell it.
func (m Mounts) MarshalText() ([]byte, error) { return []byte(m), nil }

// UnmarshalText reads what MarshalText writes.
func (m *Mounts) UnmarshalText(text []byte) error {
	switch policy := Mounts(text); policy {
	case ExistingMounts, NoMounts, AnyMounts:
		*m = policy
		return nil
	}
	return fmt.Errorf("invalid mount policy %q: use none, existing or any", text)
}

// guard restricts what is reached from a root. It does not change once the workspace is open.
type guard struct {
	policy Mounts
	mounts []dirfd.MountID
	denied denials
}

var _ dirfd.Guard = (*guard)(nil)

// CheckMount returns an error unless the policy grants the mount.
func (g *guard) CheckMount(id dirfd.MountID) error {
	switch {
	case g.policy == AnyMounts, id != 0 && slices.Contains(g.mounts, id):
		return nil
	case id == 0:
		return errMountUnknown
	case g.policy == NoMounts:
		return errMounted
	default:
		return errMountedLater
	}
}

// CheckDir returns a *DeniedError without a path for a denied directory.
func (g *guard) CheckDir(stat dirfd.FileStat) error {
	for _, d := range g.denied {
		if d.info != nil && stat.SameFile(d.info) {
			return &DeniedError{By: d.dir}
		}
	}
	return nil
}

// A guard's errors for mounts.
var (
	errMounted      = errors.New("something is mounted there, and the session reaches no mounts")
	errMountedLater = errors.New("something was mounted there after the session had opened: " +
		"open the session again to reach it")
	errMountUnknown = errors.New("this system does not tell what is mounted there: " +
		"only a session that reaches any mounts can open it")
)

// newGuard returns the guard of the root. It grants the root's own mount and, if the policy says so,
// the mounts at the mount points below. It returns nil if everything may be reached.
func (r *openRoot) newGuard(policy Mounts, points []location, denied denials) (dirfd.Guard, error) {
	if policy == AnyMounts && len(denied) == 0 {
		return nil, nil
	}
	own, err := r.handle.Stat(".")
	if err != nil {
		return nil, err
	}
	g := &guard{policy: policy, mounts: []dirfd.MountID{own.Mount()}, denied: denied}
	if err := g.CheckDir(own); err != nil { // it is mounted here under another name
		return nil, err
	}
	for _, point := range points {
		if point.below(r.at) && !point.equal(r.at) {
			if id := mountAt(r.handle, point.names[len(r.at.names):]); id != 0 {
				g.mounts = append(g.mounts, id)
			}
		}
	}
	return g, nil
}

// mountAt returns the mount that names lead to from dir, 0 if they lead nowhere. None of the names
// is a link.
func mountAt(dir *dirfd.Dir, names []string) dirfd.MountID {
	last := len(names) - 1
	for _, name := range names[:last] {
		next, err := dir.OpenDir(name)
		if err != nil {
			return 0
		}
		defer next.Close()
		dir = next
	}
	stat, err := dir.Stat(names[last])
	if err != nil {
		return 0
	}
	return stat.Mount()
}
