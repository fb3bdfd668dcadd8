package tools

import "github.com/acp-agent/acp-agent/workspace"

// Skipped counts what a [Scan] passed over, so that its result does not seem to be of everything.
type Skipped struct {
	// Binary counts files that are not text, as far as that mattered: those with a NUL at their beginning,
	// and those with a hit that are not UTF-8.
	Binary int
	// Large counts files over the limit of size.
	Large int
	// Unreadable counts files and directories that could not be opened or read.
	Unreadable int
	// First is the first of Unreadable.
	First Failure
}

// Failure is something that could not be opened or read.
type Failure struct {
	// Root is the root from which the scan came, and Rel the slash-separated path in it, "" for the root itself.
	Root workspace.Root
	Rel  string
	Err  error
}

func (s *Skipped) unreadable(root workspace.Root, rel string, err error) {
	if s.Unreadable == 0 {
		s.First = Failure{root, rel, err}
	}
	s.Unreadable++
}
