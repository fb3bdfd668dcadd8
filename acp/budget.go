package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
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

// budgets are those of a session, and which of them the user allows to exceed.
type budgets struct {
	adapter *adapter
	session sessionstore.ID // as it is stored
	cwd     workspace.Dir
	exceeds sync.Map // the day on which each may be exceeded
}

// all returns the budgets.
func (b *budgets) all() []Budget { return b.adapter.options.Budgets(b.cwd) }

// spent returns what the sessions that a budget is for have cost in its period.
func (b *budgets) spent(ctx context.Context, of Budget) (sum float64, err error) {
	q := sessionstore.ChargeQuery{Meter: sessionstore.CostMeter}
	if of.Per == PerSession {
		q.Session = b.session
	} else {
		now := time.Now()
		q.Since = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	}
	sums, err := b.adapter.options.Store.Sums(ctx, q)
	inside := map[sessionstore.ID]bool{b.session: true}
	for _, c := range sums {
		if c.Unit != of.Currency || err != nil {
			continue
		}
		in, known := inside[c.Session]
		if !known {
			in, err = b.counts(ctx, of, c.Session)
			inside[c.Session] = in
		}
		if in {
			sum += c.Amount
		}
	}
	return sum, err
}

// counts reports whether a budget is for a session.
func (b *budgets) counts(ctx context.Context, of Budget, id sessionstore.ID) (bool, error) {
	if of.Within.IsZero() {
		return true, nil
	}
	one, err := b.adapter.options.Store.Get(ctx, id)
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cwd, within := one.Keys.Real[0], workspace.Real(of.Within)
	return of.Within.Contains(one.Keys.Roots.Cwd()) || within.Contains(cwd) ||
		slices.ContainsFunc(b.adapter.origins().Of(cwd), within.Contains), nil
}

// confirm asks the user, with ask, whether to go on if a budget is used up. It reports false if they
// do not want that or cannot be asked. If it is not known what was used, the turn goes on.
func (b *budgets) confirm(
	ctx context.Context,
	ask func(context.Context, backend.Question) (backend.Answer, error),
) (goesOn bool) {
	for _, one := range b.all() {
		spent, err := b.spent(ctx, one)
		if err != nil {
			b.adapter.log.Warn("cannot check a budget", "session", b.session, "error", err)
			continue
		}
		today := time.Now().Format(time.DateOnly)
		if day, _ := b.exceeds.Load(one); spent < one.Amount || day == today {
			continue
		}
		answer, err := ask(ctx, backend.Question{
			Call: backend.NewToolCall("budget", sdk.ToolKindOther,
				fmt.Sprintf("The budget of %s is used up", one),
				text.Money(spent, one.Currency)+" were used, as reported by the agents."),
			Once: "Go on with this prompt", Always: "Go on, and do not ask again in this session " +
				"today",
			Reject: "Stop",
		})
		if err != nil {
			return false
		}
		if answer.Always {
			b.exceeds.Store(one, today)
		}
	}
	return true
}

// overBudget answers a prompt with which a budget would be exceeded, as a turn that has failed:
// some clients remove a prompt that was refused, with the answer.
func overBudget(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	if ctx.Err() != nil { // the turn has ended, and the question with it
		return nil, context.Cause(ctx)
	}
	err := u.Update(ctx, backend.Note("The agent did not get this prompt: a budget is used up, "+
		"and you did not choose to go on."))
	return backend.FailedTurn(), err
}

// usedUp returns notes for the user about the budgets that the turn which has ended, with its cost,
// has used up.
func (b *budgets) usedUp(ctx context.Context, cost map[string]float64) (notes []backend.Update) {
	for _, one := range b.all() {
		if cost[one.Currency] == 0 {
			continue
		}
		spent, err := b.spent(ctx, one)
		if err != nil || spent < one.Amount || spent-cost[one.Currency] >= one.Amount {
			continue // not used up, or it was before
		}
		notes = append(notes, backend.Note(fmt.Sprintf("\n\nThe budget of %s is used up: %s, as "+
			"reported by the agents. You will be asked before the next prompt.", one,
			text.Money(spent, one.Currency))))
	}
	return notes
}
