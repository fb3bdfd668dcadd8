package workspace

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// follow puts the target of the link name, which is at, in its place.
func (k *walker) follow(name string, at location) error {
	if k.hops++; k.hops > maxLinks {
		return &TooManyLinksError{Path: k.asked.path, Link: at.String(), Limit: maxLinks}
	}
	link := k.kept(at)
	if misleads, err := k.here().linksMislead(); err != nil {
		return k.failed(err)
	} else if misleads {
		return &OutsideError{Path: k.asked.path, Link: link.String(), Roots: k.w.roots,
			Why: fmt.Sprintf("the link %s is one of the system's own, which leads elsewhere than it says", link)}
	}
	target, err := k.here().Readlink(name)
	if errors.Is(err, syscall.EINVAL) {
		return errChanging // it is no link any more
	}
	if err != nil {
		return k.failed(err)
	}
	top, names, dir := native{}.split(target)
	if len(k.rest) == 0 && dir {
		k.asked.dir = true
	}
	k.ends = append(k.ends, len(k.rest))
	k.links = append(k.links, link)
	k.rest = append(names, k.rest...)
	if top != "" {
		k.leave()
		k.root = above
		k.at = location{top: top}
	}
	return nil
}

// approach goes through the deepest door on the way, if there is one.
func (k *walker) approach() bool {
	target := k.rest[:len(k.rest)-k.end()]
	ahead := location{k.at.top, target}
	if len(k.at.names) > 0 {
		ahead = k.at.child(target...)
	}
	root, taken, ok := k.w.enter(ahead)
	if !ok {
		return false
	}
	// The door may lie behind, when ".." led out of a root inside another.
	if len(target) == len(k.rest) {
		k.rest = ahead.names[taken:]
	} else {
		k.rest = slices.Concat(ahead.names[taken:], k.rest[len(target):])
	}
	k.enter(root)
	return true
}

// stepAbove takes one name above the roots: only towards a root.
func (k *walker) stepAbove() error {
	if len(k.rest) == 0 {
		return k.outside("it leads to")
	}
	name := k.rest[0]
	k.rest = k.rest[1:]
	if name == ".." {
		k.at = k.at.parent()
		return nil
	}
	k.at = k.into(name)
	if !k.w.leadsToRoot(k.at) {
		return k.outside("")
	}
	return nil
}

// outside says that the walker is in no root, and how it came there.
func (k *walker) outside(how string) error {
	e := &OutsideError{Path: k.asked.path, Roots: k.w.roots}
	if n := len(k.links); n > 0 {
		e.Link = k.links[n-1].String()
		how = fmt.Sprintf("the link %s leads to", e.Link)
	}
	if how != "" {
		e.Why = fmt.Sprintf("%s %s, which is in none of them", how, k.at)
	} else {
		e.Why = fmt.Sprintf("%s is in none of them", k.at)
	}
	return e
}

// end is the length of rest at which the innermost link's target ends.
func (k *walker) end() int {
	if len(k.ends) == 0 {
		return 0
	}
	return k.ends[len(k.ends)-1]
}

// endLinks forgets the links whose targets were walked to the end. Each must have led into a
// root (A23).
func (k *walker) endLinks() error {
	for len(k.ends) > 0 && len(k.rest) == k.end() {
		if k.root == above {
			return k.outside("it leads to")
		}
		k.ends = k.ends[:len(k.ends)-1]
		k.links = k.links[:len(k.links)-1]
	}
	return nil
}
