package workspace

// door is a location through which paths enter a root: its spelling or its real
// path. Behind it is the handle that was opened, whatever stands there by now (C8).
type door struct {
	at   location
	root int
}

// doorsOf lists the doors of the opened roots. Of roots with one real path the first owns
// the doors of all.
func doorsOf(opened []Root, real []location) []door {
	var doors []door
	for i, root := range opened {
		owner := i
		for j := range i {
			if real[j].equal(real[i]) {
				owner = j
				break
			}
		}
		doors = append(doors, door{real[i], owner})
		if spelled := locate(root.Dir.path); !spelled.equal(real[i]) {
			doors = append(doors, door{spelled, owner})
		}
	}
	return doors
}

// enter finds the door deepest on the way to at, and how many of at's names it takes.
func (w *Workspace) enter(at location) (root, names int, ok bool) {
	names = -1
	for _, d := range w.doors {
		if len(d.at.names) > names && at.below(d.at) {
			root, names, ok = d.root, len(d.at.names), true
		}
	}
	return root, names, ok
}

// rootAt is the root whose real path at is.
func (w *Workspace) rootAt(at location) (root int, ok bool) {
	for i, real := range w.real {
		if at.equal(real) {
			return i, true
		}
	}
	return 0, false
}

// leadsToRoot reports whether a root's real path lies below at.
func (w *Workspace) leadsToRoot(at location) bool {
	for _, real := range w.real {
		if real.below(at) {
			return true
		}
	}
	return false
}
