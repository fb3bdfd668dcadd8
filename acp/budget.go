package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Budget is the amount that sessions may cost, as their agents report it, before the user is asked
// whether to go on. It is not a quota: a turn that runs is not stopped, and the user may go on.
type Budget struct {
	Amount   float64
	Currency string
	Per      Period
	// Within selects the sessions whose working directory is this one or in it, or in a worktree of
	// it, which count together. If it is zero, all of the user's sessions do.
	Within workspace.Dir
}

// Period is the time for which a [Budget] is.
type Period string

// All periods.
const (
	PerSession Period = "session"
	PerDay     Period = "day" // in the program's time zone
)

// ParseBudget returns the budget that a text such as "5 USD per day" describes. The zero Budget is
// "".
func ParseBudget(text string) (Budget, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Budget{}, nil
	}
	wrong := fmt.Errorf(`%q is not a budget such as "5 USD per day" or "2.50 EUR per session"`,
		text)
	if len(words) != 4 || words[2] != "per" {
		return Budget{}, wrong
	}
	amount, err := strconv.ParseFloat(words[0], 64)
	unit, ok := sessionstore.CleanUnit(words[1])
	b := Budget{Amount: amount, Currency: unit, Per: Period(words[3])}
	if err != nil || !ok || !sessionstore.ValidAmount(amount) || amount == 0 ||
		b.Per != PerSession && b.Per != PerDay {
		return Budget{}, wrong
	}
	return b, nil
}

// String is the inverse of [ParseBudget].
func (b Budget) String() string {
	if b.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s %s per %s", strconv.FormatFloat(b.Amount, 'f', -1, 64),
		b.Currency, b.Per)
}

// IsZero reports whether there is no budget.
func (b Budget) IsZero() bool { return b.Amount == 0 }

// MarshalText implements [encoding.TextMarshaler].
func (b Budget) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (b *Budget) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBudget(string(text))
	return err
}

// spent returns what the sessions that a budget is for have cost in its period.
func (s *session) spent(ctx context.Context, b Budget) (sum float64, err error) {
	q := sessionstore.ChargeQuery{Meter: sessionstore.CostMeter}
	if b.Per == PerSession {
		q.Session = s.storeID
	} else {
		now := time.Now()
		q.Since = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	}
	sums, err := s.agent.options.Store.Sums(ctx, q)
	inside := map[sessionstore.ID]bool{s.storeID: true}
	for _, c := range sums {
		if c.Unit != b.Currency || err != nil {
			continue
		}
		in, known := inside[c.Session]
		if !known {
			in, err = s.counts(ctx, b, c.Session)
			inside[c.Session] = in
		}
		if in {
			sum += c.Amount
		}
	}
	return sum, err
}

// counts reports whether a budget is for a session.
func (s *session) counts(ctx context.Context, b Budget, id sessionstore.ID) (bool, error) {
	if b.Within.IsZero() {
		return true, nil
	}
	one, err := s.agent.options.Store.Get(ctx, id)
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cwd, within := one.Keys.Real[0], workspace.Real(b.Within)
	return b.Within.Contains(one.Keys.Roots.Cwd()) || within.Contains(cwd) ||
		slices.ContainsFunc(s.agent.origins().Of(cwd), within.Contains), nil
}

// budgets returns the budgets of the session.
func (s *session) budgets() []Budget { return s.agent.options.Budgets(s.params.roots.Cwd()) }

// errBudget is the outcome of a turn for which the user did not want to exceed a budget.
var errBudget = errors.New("a budget is used up")

// askToExceed asks the user whether to go on if a budget of the session is used up. It returns
// errBudget if the user does not want that or cannot be asked. If it is not known what was used,
// the turn goes on.
func (s *session) askToExceed(ctx context.Context, budgets []Budget) error {
	for _, b := range budgets {
		spent, err := s.spent(ctx, b)
		if err != nil {
			s.agent.log.Warn("cannot check a budget", "session", s.id, "error", err)
			continue
		}
		today, exceeds := time.Now().Format(time.DateOnly), false
		s.withState(func() { exceeds = s.exceeds[b] == today })
		if spent < b.Amount || exceeds {
			continue
		}
		q := backend.Question{
			Call: backend.NewToolCall("budget", sdk.ToolKindOther,
				fmt.Sprintf("The budget of %s is used up", b),
				text.Money(spent, b.Currency)+" were used, as reported by the agents."),
			Once: "Go on with this prompt", Always: "Go on, and do not ask again in this session " +
				"today",
			Reject: "Stop",
		}
		const method = protocol.RequestPermission
		asked := newQuestion(method, s.asker().addressed(method, q.Params()))
		asked.ofTurn = true
		got := s.viewers.poll(ctx, asked)()
		answer, err := q.Answer(ctx, got.Result, got.Err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return errBudget
		}
		if answer.Always {
			s.withState(func() {
				if s.exceeds == nil {
					s.exceeds = map[Budget]string{}
				}
				s.exceeds[b] = today
			})
		}
	}
	return nil
}

// overBudget answers a prompt with which a budget would be exceeded, as a turn that has failed:
// some clients remove a prompt that was refused, with the answer.
func (s *session) overBudget(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	err := u.Update(ctx, backend.Note("The agent did not get this prompt: a budget is used up, "+
		"and you did not choose to go on."))
	return backend.FailedTurn(), err
}

// tellBudgets tells the user which budgets the turn that has ended, with its cost, has used up.
func (s *session) tellBudgets(ctx context.Context, cost map[string]float64) {
	for _, b := range s.budgets() {
		if cost[b.Currency] == 0 {
			continue
		}
		spent, err := s.spent(ctx, b)
		if err != nil || spent < b.Amount || spent-cost[b.Currency] >= b.Amount {
			continue // not used up, or it was before
		}
		note := backend.Note(fmt.Sprintf("\n\nThe budget of %s is used up: %s, as reported by the "+
			"agents. You will be asked before the next prompt.", b, text.Money(spent, b.Currency)))
		if err := s.send(ctx, note, showFirst); err != nil {
			s.agent.log.Debug("notice not sent", "session", s.id, "error", err)
		}
	}
}
