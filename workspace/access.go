package workspace

import "fmt"

// Access describes what is about to be done with a file or directory.
type Access struct {
	Kind AccessKind
	// Path is the path that was asked for, which may be relative, and At where it leads.
	Path string
	At   Ref
	// Folder means that a directory is moved, with all that is in it.
	Folder bool
	// ToPath and To are the destination of a move: the path that was asked for, and where it leads.
	ToPath string
	To     Ref
}

// AccessKind is the kind of an [Access].
type AccessKind int

const (
	// Read reads what a file contains. It is open, and nothing of it was read.
	Read AccessKind = iota
	// Change writes or removes a file, or creates or removes a directory.
	Change
	// Move gives a file or directory another path.
	Move
)

// Checked returns the same workspace for somebody who may not use all of it. check is called before
// each access, from several goroutines, with the error of the check that w has itself, nil for
// none. An error keeps the access from happening, and is wrapped in a *[RefusedError]. Names, and
// what else can be known of a file without reading it, are not checked. Closing one of the two
// closes the other.
func (w *Workspace) Checked(check func(a Access, before error) error) *Workspace {
	return &Workspace{core: w.core, check: func(a Access) error {
		var before error
		if w.check != nil {
			before = w.check(a)
		}
		return check(a, before)
	}}
}

// Check returns an error for a change in a root that may only be read, and a *[RefusedError] if the
// workspace refuses an access now. Every change passes through here.
func (w *Workspace) Check(a Access) error {
	if a.Kind != Read {
		if err := a.At.checkGrant(); err != nil {
			return err
		}
	}
	if a.Kind == Move {
		if err := a.To.checkGrant(); err != nil {
			return err
		}
	}
	if w.check == nil {
		return nil
	}
	if err := w.check(a); err != nil {
		return &RefusedError{Path: a.At.Path(), Why: err}
	}
	return nil
}

// checkGrant returns an error if r is in a root that may only be read.
func (r Ref) checkGrant() error {
	if r.root.Grant == ReadWrite {
		return nil
	}
	return fmt.Errorf("%s cannot be changed: the folder %s is read-only", r.Path(), r.root.Dir)
}

// checked returns an open file to which path led, or closes it if it may not be read.
func (w *Workspace) checked(f *File, path string) (*File, error) {
	if err := w.Check(Access{Path: path, At: f.ref}); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
