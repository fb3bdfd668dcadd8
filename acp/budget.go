package acp

import "github.com/acp-agent/acp-agent/acp/internal/session/budget"

// Budget is the amount that sessions may cost, as their agents report it, before the user is asked
// whether to go on. It is not a quota: a turn that runs is not stopped, and the user may go on. Its
// fields:
//
//	Amount   float64
//	Currency string
//	Per      Period
//	Within   workspace.Dir
//
// Within selects the sessions whose working directory is this one or in it, or in a worktree of it,
// which count together. If it is zero, all of the user's sessions do.
type Budget = budget.Budget

// Period is the time for which a [Budget] is: [PerSession] or [PerDay].
type Period = budget.Period

// All periods.
const (
	PerSession = budget.PerSession
	PerDay     = budget.PerDay // in the program's time zone
)

// ParseBudget returns the budget that a text such as "5 USD per day" describes. The zero Budget is
// "".
func ParseBudget(text string) (Budget, error) { return budget.Parse(text) }
