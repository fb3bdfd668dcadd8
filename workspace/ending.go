package workspace

// ending says what to do at the end of a path. The zero ending is an entry that must exist, a link
// itself.
type ending struct {
	follow         bool // follow a link
	mayMiss        bool // nothing need be there, nor where a link there leads
	parentsMayMiss bool // nor need the directories above, unless a link leads to them
	file           bool // the caller allows only a regular file there, with checkKind
	entry          bool // the caller decides what a separator after the last name means
	directory      bool // it must be a directory; only asDirectory sets it
}

var (
	followLast     = ending{follow: true}
	keepLast       = ending{}
	orMissing      = ending{follow: true, mayMiss: true, file: true}
	missingParents = ending{follow: true, parentsMayMiss: true}
	toChange       = ending{mayMiss: true, entry: true}
)

// asDirectory returns e for a path with a separator after its last name, as in "d/": that leads to a
// directory, through a link too. Only missingParents lets this directory be missing, and a change
// is one of the entry itself.
func (e ending) asDirectory() ending {
	if !e.entry {
		e.follow, e.mayMiss, e.directory = true, false, true
	}
	return e
}

// checkKind returns an error if something is where a path led that must not be there.
func (e ending) checkKind(found arrival) error {
	if !e.file || !found.exists() || found.stat.IsRegular() {
		return nil
	}
	return notRegular(found.asked.path, found.stat.Mode())
}
