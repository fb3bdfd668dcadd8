package child

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// EndedError is returned for the requests of a child that has ended or closed its output.
type EndedError struct {
	Name      string   // as in the log
	Exit      error    // a *process.ExitError, nil for status 0
	Stderr    []string // its last lines, nil if unknown
	Stray     *string  // the first line of its output that is not a message, nil for none
	Reason    error    // why we ended it, nil if it ended by itself
	InSession bool     // the request names a session
}

// Error says how the child ended and what to do.
func (e *EndedError) Error() string {
	how := e.Name + " ended: exit status 0"
	if e.Exit != nil {
		how = e.Exit.Error()
	} else if len(e.Stderr) > 0 {
		how += ": " + text.Plain(e.Stderr[len(e.Stderr)-1])
	}
	if e.Reason != nil {
		how = fmt.Sprintf("%s was ended: %v", e.Name, e.Reason)
	}
	separator := "; "
	if strings.Contains(how, "\n") {
		separator = "\n"
	}
	advice := "see its stderr in acp-agent's log, under child=" + e.Name
	switch {
	case len(e.Stderr) > 0:
		advice = "run its command in a terminal to see more"
	case e.Stderr != nil:
		did := "wrote nothing to its stderr"
		if e.Stray != nil {
			did = fmt.Sprintf("printed %q, which is not an ACP message", *e.Stray)
		}
		advice = "it " + did + ". Many agents speak ACP only with an argument, such as opencode " +
			"acp; run its command in a terminal to see what it prints"
	}
	if e.InSession {
		advice = "try again: it is restarted and the session continues; " + advice
	}
	return "the agent " + how + separator + advice
}

// Unwrap returns how the process ended.
func (e *EndedError) Unwrap() error { return e.Exit }

// ErrNoAnswer is the cause of a context that ended because the child did not answer in time.
var ErrNoAnswer = errors.New("the agent did not answer")

// errNotReading is the reason for killing a child that leaves too much input unread.
var errNotReading = errors.New("it does not read its input")

// Rejection returns the error with which the child answered a request, or nil if err is another
// error.
func Rejection(err error) *jsonrpc.Error {
	e, _ := errors.AsType[*jsonrpc.Error](err)
	return e
}

// explain returns the error for the client of a request with the given params: without secrets, and
// with what the user can do. If the connection has ended, it waits for the end of the process.
func (c *Process) explain(ctx context.Context, params backend.Raw, err error) error {
	if errors.Is(err, jsonrpc.ErrClosed) {
		select {
		case <-c.done:
			err = c.exit
		case <-ctx.Done():
			return err
		}
	}
	if e := Rejection(err); e != nil {
		clean := &jsonrpc.Error{Code: e.Code, Message: c.program.config.Secrets.Text(e.Message),
			Data: c.program.config.Secrets.JSON(e.Data)}
		login := c.program.config.Profile.Start.Login
		if e.Code == protocol.CodeAuthRequired && login != "" {
			const advice = " (if your editor does not offer to log in, run in a terminal: %s)"
			clean.Message += fmt.Sprintf(advice, login)
		}
		err = clean
	} else if e, ok := errors.AsType[*EndedError](err); ok {
		explained := *e
		id, _, _ := protocol.TakeSessionID(params)
		explained.InSession = id != ""
		err = &explained
	}
	return c.explainDenied(err)
}
