package process

import (
	"errors"
	"os"
)

type pipe struct{ read, write *os.File }

// pipes are the three streams of a child.
type pipes struct{ stdin, stdout, stderr pipe }

func newPipes() (pipes, error) {
	var p pipes
	var errs [3]error
	p.stdin.read, p.stdin.write, errs[0] = os.Pipe()
	p.stdout.read, p.stdout.write, errs[1] = os.Pipe()
	p.stderr.read, p.stderr.write, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		p.closeTheirs()
		p.closeOurs()
		return pipes{}, err
	}
	return p, nil
}

// closeTheirs closes the ends that the child has now. Closing a nil file does nothing.
func (p pipes) closeTheirs() {
	_ = p.stdin.read.Close()
	_ = p.stdout.write.Close()
	_ = p.stderr.write.Close()
}

func (p pipes) closeOurs() {
	_ = p.stdin.write.Close()
	_ = p.stdout.read.Close()
	_ = p.stderr.read.Close()
}
