package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Mounts says which mounts below a root belong to it (C7). A root that is itself where something
// is mounted is what was granted, and a mount over a root that came later is not looked at.
type Mounts int

const (
	// ExistingMounts are those that were there when the session opened, such as the node_modules of
	// a development container.
	ExistingMounts Mounts = iota
	// NoMounts: everything must be where the root's own directory is.
	NoMounts
	// AnyMounts are those that come later too. Whoever can mount below a root decides what is read.
	AnyMounts
)

// name is how a flag or a configuration spells the policy, "" if there is no such.
func (m Mounts) name() string {
	switch m {
	case ExistingMounts:
		return "existing"
	case NoMounts:
		return "none"
	case AnyMounts:
		return "any"
	default:
		return ""
	}
}

// String is "existing", "none" or "any".
func (m Mounts) String() string { return cmp.Or(m.name(), "Mounts("+strconv.Itoa(int(m))+")") }

// MarshalText is the policy as String spells it, for flags and configurations.
func (m Mounts) MarshalText() ([]byte, error) {
	if m.name() == "" {
		return nil, fmt.Errorf("workspace: there is no policy for mounts %d", int(m))
	}
	return []byte(m.name()), nil
}

// UnmarshalText reads what MarshalText writes. The error names what there is.
func (m *Mounts) UnmarshalText(text []byte) error {
	for _, policy := range []Mounts{ExistingMounts, NoMounts, AnyMounts} {
		if policy.name() == string(text) {
			*m = policy
			return nil
		}
	}
	return fmt.Errorf("%q is no policy for mounts: say none, existing or any", text)
}

// mountID tells mounts apart. Zero is an unknown one.
type mountID uint64

// granted is what the handles of a root may reach. It does not change after Open.
type granted struct {
	policy Mounts
	ids    []mountID
	denied []denial
}

// deniedBy is the denied directory that was seen, if it is one: under whatever name, such as another case of it
// where names have none, or a second place where it is mounted.
func (g *granted) deniedBy(seen sight) Dir {
	for _, d := range g.denied {
		if d.info != nil && seen.is(d.info) {
			return d.dir
		}
	}
	return Dir{}
}

// refused is why nothing in the mount id may be reached, nil if it may.
func (g *granted) refused(id mountID) error {
	switch {
	case g.policy == AnyMounts, id != 0 && slices.Contains(g.ids, id):
		return nil
	case id == 0:
		return errMountUnknown
	case g.policy == NoMounts:
		return errMounted
	default:
		return errMountedLater
	}
}

// A handle's errors for what it does not reach. What the user sees is a [MountError].
var (
	errMounted      = errors.New("something is mounted there, and the session reaches no mounts")
	errMountedLater = errors.New("something was mounted there after the session had opened: open the session again to reach it")
	errMountUnknown = errors.New("this system does not tell what is mounted there: only a session that reaches any mounts can open it")
)

func isMountRefusal(err error) bool {
	return errors.Is(err, errMounted) || errors.Is(err, errMountedLater) || errors.Is(err, errMountUnknown)
}

// grant makes a root's handle reach what the policy says: its own mount, and those that are below it now; and
// no denied directory. at is its real path.
func (h *handle) grant(policy Mounts, at location, points []location, denied []denial) error {
	own, err := h.look(".")
	if err != nil {
		return err
	}
	g := &granted{policy: policy, ids: []mountID{own.mount}, denied: denied}
	if policy == ExistingMounts {
		for _, point := range points {
			if point.below(at) && !point.equal(at) {
				g.ids = append(g.ids, h.mountAt(point.names[len(at.names):])...)
			}
		}
	}
	h.granted = g
	return nil
}

// mountAt is the mount that the names, which are no links, lead to from h; none if they lead nowhere.
func (h *handle) mountAt(names []string) []mountID {
	dir := h
	for _, name := range names[:len(names)-1] {
		next, err := dir.into(name)
		if err != nil {
			return nil
		}
		defer next.Close()
		dir = next
	}
	there, err := dir.look(names[len(names)-1])
	if err != nil || there.mount == 0 {
		return nil
	}
	return []mountID{there.mount}
}
