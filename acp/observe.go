package acp

import (
	"encoding/json"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Event is passed to [Options.Observe]: a [RequestEvent], a [RefusedEvent], an [OpenEvent], a
// [QuestionEvent], an [AnswerEvent], a [TurnEvent] or a [UsageEvent].
type Event any

// RequestEvent says that a request of the client was answered.
type RequestEvent struct {
	// Method is the method as the client sent it, which can be any text.
	Method string
	// Session is the session that the request names, "" if it names none.
	Session sessionstore.ID
	// Duration is the time from the arrival of the request to its result.
	Duration time.Duration
	// Err is nil if the request succeeded.
	Err error
	// Did says in the past tense what a request has done that succeeded and changed something, ""
	// for methods that have events of their own or change nothing.
	Did string
}

// RefusedEvent says that a message was not passed on to the backend, because a remote peer may not
// send it; see [Options.RemoteRights].
type RefusedEvent struct {
	// Method is the method as the client sent it, which can be any text.
	Method string
	// Session is the session that the message names, "" if it names none.
	Session sessionstore.ID
}

// OpenEvent says that a session was opened, or opened again with other roots.
type OpenEvent struct {
	Session sessionstore.ID
	// Roots are the real paths of the roots, the working directory first.
	Roots []workspace.Dir
}

// QuestionEvent says that a session asks its user a question, or has stopped asking it.
type QuestionEvent struct {
	Session sessionstore.ID
	Open    bool
}

// TurnEvent says that a turn begins, or has ended, also if the client that sent the prompt has left
// by then.
type TurnEvent struct {
	Session sessionstore.ID
	Running bool
	// StopReason is why the agent stopped, "" if the turn failed.
	StopReason sdk.StopReason
	// Err is nil unless the turn failed.
	Err error
}

// AnswerEvent says that the client, or a rule of the user, answered a permission request.
type AnswerEvent struct {
	Session sessionstore.ID
	// Title is the title of the tool call, as the user has seen it.
	Title string
	// Choice is the kind of the chosen option, such as allow_once, "" if there was no choice.
	Choice string
	// Rule is the rule that answered, "" for the client.
	Rule string
	// Duration is how long the answer took.
	Duration time.Duration
	// Late says that another client had answered before, or the question had ended. The answer had
	// no effect, and Duration is 0.
	Late bool
}

// UsageEvent says what a session has used, as its agent reports it.
type UsageEvent struct {
	Session sessionstore.ID
	Charges []sessionstore.Charge
}

// observe tells the observer what has happened. Nothing depends on it: a panic is logged.
func (c *connection) observe(e Event) {
	if observe := c.adapter.options.Observe; observe != nil {
		_ = c.adapter.tasks.Guard("observer", func() error {
			observe(e)
			return nil
		})
	}
}

// observeUsage tells the observer what was stored as used in a session, if anything was.
func (c *connection) observeUsage(id sessionstore.ID, charges []sessionstore.Charge) {
	if len(charges) > 0 {
		c.observe(UsageEvent{id, charges})
	}
}

// withEvent returns work, which tells the observer when it has answered r.
func (c *connection) withEvent(r *jsonrpc.Request, work jsonrpc.Work) jsonrpc.Work {
	if c.adapter.options.Observe == nil || work == nil || r.IsNotification() {
		return work
	}
	begun, method, id := time.Now(), r.Method, sessionOf(r)
	return func() (json.RawMessage, error) {
		result, err := work()
		e := RequestEvent{method, id, time.Since(begun), err, ""}
		if err == nil {
			e.Did = methodOf(method).did
		}
		c.observe(e)
		return result, err
	}
}
