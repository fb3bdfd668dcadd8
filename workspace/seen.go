package workspace

// Seen is what a directory looked like, as far as somebody depends on it. [Directory.Shows] tells whether it still looks
// like that. Whoever looks fills it in, a directory before what is in it, so that what changes meanwhile shows later.
type Seen struct {
	// Name is the directory's in the one that it is in. The first one's does not matter.
	Name string
	// Look is that at the directory itself.
	Look Look
	// Listed: which names are in it matters.
	Listed bool
	// Entries are names in it that matter, whether something bears them or not.
	Entries []SeenEntry
	// Below are directories in it, not links to such.
	Below []*Seen
}

// SeenEntry is a look at a name in a directory: at a link itself.
type SeenEntry struct {
	Name string
	Look Look
}

// Shows reports whether the directory, and all that s says of it, certainly is as it was. It is meant to be asked often: it
// reads no file and lists no directory, and looks at each once. On Linux that takes four calls of the system for a
// directory with one file, and no memory.
//
// Only what was seen is looked into: a link, a mount or another directory that took the place of a directory
// answers the question, and leads nowhere.
func (d *Directory) Shows(s *Seen) bool {
	if d.w.begin() != nil {
		return false
	}
	defer d.w.end()
	return d.handle.shows(s)
}

// isEmpty reports whether all that matters in the directory are its names, or what it does not have. As long as it is
// unchanged, so is that, and it need not be opened.
func (s *Seen) isEmpty() bool {
	for i := range s.Entries {
		if s.Entries[i].Look.stamp.there() {
			return false
		}
	}
	return len(s.Below) == 0
}

// isStill reports whether now is the stamp of the directory that was seen, with the names that it had if those matter.
func (s *Seen) isStill(now stamp) bool {
	if s.Listed {
		return s.Look.still(now)
	}
	return s.Look.stamp.isThing(now)
}
