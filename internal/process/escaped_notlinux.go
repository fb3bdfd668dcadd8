//go:build unix && !linux

package process

import "syscall"

// family cannot recognize the descendants of a child here: those that left the group live on.
type family struct{}

func newFamily() family { return family{} }

func (family) env() []string { return nil }

func (family) signalOutside(int, syscall.Signal) []int { return nil }

func (family) has(int) bool { return false }
