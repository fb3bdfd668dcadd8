//go:build unix && !linux

package process

// lifeline does nothing on this system: a group whose members ignore the end of their input lives
// on when our process is killed.
type lifeline struct{}

func newLifeline(int) lifeline { return lifeline{} }

func (lifeline) close() {}
