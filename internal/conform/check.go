package conform

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

// Level says how the protocol demands something.
type Level string

// The levels. What only May be so is in no text, or in one that binds the client; an agent that
// does something else passes with a note.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
	May    Level = "MAY"
)

// Check is a question about an agent.
type Check struct {
	// ID is the clause of docs/internals/conformance.md and a name, such as A4.relative.
	ID    string `json:"id"`
	Level Level  `json:"level"`
	// Sentence says what an agent does that passes.
	Sentence string `json:"sentence"`
	// Link leads to the text that demands it.
	Link string `json:"link"`
	// Draft is set for what only the draft of additionalDirectories demanded.
	Draft bool `json:"draft,omitempty"`
	// Prompt is set for a check that sends a prompt.
	Prompt bool `json:"prompt,omitempty"`
}

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	Pass       Verdict = "pass"
	Fail       Verdict = "fail"
	NotOffered Verdict = "not offered"
	NotTried   Verdict = "not tried"
)

// Result is a check and what it came to.
type Result struct {
	Check
	Verdict Verdict `json:"verdict"`
	// Reason says why it failed or was not tried, or what is odd about an agent that passed.
	Reason string `json:"reason,omitempty"`
	// Sent and Received are the lines meanwhile, shortened and without secrets.
	Sent     []string `json:"sent,omitempty"`
	Received []string `json:"received,omitempty"`

	before []rawrpc.Message // what came between the request and its answer
}

// row is a check with what to do for it, as in checks.json. In params, $A, $B, $C and $U stand for
// folders, and the names in Makes for the ids of sessions.
type row struct {
	Check
	// Phase is the process in which it is tried, see [Run].
	Phase string
	// Needs are capabilities, without which the check is not offered. Offers is a capability that
	// decides whether an answer is demanded. After is a check that must have passed.
	Needs  []string
	Offers string
	After  string
	// Send is the method of a request, Params its params in addition to those of every session;
	// Without are those that are left out. Line is sent as it is, Echo is the id of a request.
	Send    string
	Params  map[string]json.RawMessage
	Without []string
	Line    string
	Echo    json.RawMessage
	// Expect is the required answer, and Code the recommended error. Makes names the session that
	// the answer makes, which other checks use.
	Expect string
	Code   int
	Makes  string
	// Shows are the additional folders that session/list must show afterwards, of the session of
	// the request or Of.
	Of    string
	Shows []string
	// Has are sessions that the list must show, or nothing is known, and Lacks those that it must
	// not show; * stands for all.
	Has, Lacks []string

	chosen bool
}

//go:embed checks.json
var checksJSON []byte

// Checks returns the checks that only selects; see [Options].
func Checks(only []string) (checks []Check, err error) {
	all, err := choose(only)
	for _, r := range all {
		if r.chosen {
			checks = append(checks, r.Check)
		}
	}
	return checks, err
}

// choose returns all rows, with those chosen that only selects. The error names what selects none.
func choose(only []string) (all []row, err error) {
	if err := json.Unmarshal(checksJSON, &all); err != nil {
		return nil, err
	}
	unknown := slices.Clone(only)
	for i := range all {
		id := all[i].ID
		clause, _, _ := strings.Cut(id, ".")
		selects := func(name string) bool {
			return name == id || name == clause || name == strings.TrimRight(clause, "0123456789")
		}
		all[i].chosen = len(only) == 0 || slices.ContainsFunc(only, selects)
		unknown = slices.DeleteFunc(unknown, selects)
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("there is no check %q; --list shows them", unknown[0])
	}
	return all, nil
}

// untried is the error of a check that was not carried out.
type untried struct {
	Verdict
	reason string
}

func (u untried) Error() string { return u.reason }

func notTried(format string, args ...any) error {
	return untried{NotTried, fmt.Sprintf(format, args...)}
}

// verdict returns the verdict of a check that ended with err, and the reason.
func (c Check) verdict(err error) (Verdict, string) {
	u, skipped := errors.AsType[untried](err)
	switch {
	case err == nil:
		return Pass, ""
	case skipped:
		return u.Verdict, u.reason
	case c.Level == May:
		return Pass, err.Error()
	}
	return Fail, err.Error()
}
