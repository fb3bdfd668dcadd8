package acp

import (
	"errors"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// errPanicked is what a call that panicked is said to return.
var errPanicked = errors.New("internal error: the agent's code panicked")

// guard calls a runtime's code on a goroutine of ours, or among steps that are to be done whatever it does. A
// panic in it is logged and becomes an error (W8).
func (a *agent) guard(what string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			jsonrpc.LogPanic(a.log, value, "in", what)
			err = errPanicked
		}
	}()
	return call()
}
