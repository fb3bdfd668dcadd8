// Package budget asks the user whether to go on once their sessions have cost what they want to
// spend.
package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Budget is an amount that sessions may cost. Package acp describes its fields.
type Budget struct {
	Amount   float64
	Currency string
	Per      Period
	Within   workspace.Dir
}

// Period is the time for which a [Budget] is.
type Period string

// All periods.
const (
	PerSession Period = "session"
	PerDay     Period = "day" // in the program's time zone
)

// Parse returns the budget that a text such as "5 USD per day" describes. The zero Budget is
// "".
func Parse(text string) (Budget, error) {
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

// String is the inverse of [Parse].
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
	*b, err = Parse(string(text))
	return err
}

// Budgets are those of a session, and which of them the user allows to exceed. The fields do not
// change.
type Budgets struct {
	Session sessionstore.ID // as it is stored
	All     func() []Budget // returns them
	Store   interface {
		sessionstore.Sessions
		sessionstore.Ledger
	}
	Origins func() worktree.Origins // returns the folders from which worktrees were made
	Exceeds *sync.Map               // the day on which the user allows each to be exceeded
	Log     *slog.Logger
}

// spent returns what the sessions that a budget is for have cost in its period.
func (b *Budgets) spent(ctx context.Context, of Budget) (sum float64, err error) {
	q := sessionstore.ChargeQuery{Meter: sessionstore.CostMeter}
	if of.Per == PerSession {
		q.Session = b.Session
	} else {
		now := time.Now()
		q.Since = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	}
	sums, err := b.Store.Sums(ctx, q)
	inside := make(map[sessionstore.ID]bool) // a session has a sum for each agent and mark
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
func (b *Budgets) counts(ctx context.Context, of Budget, id sessionstore.ID) (bool, error) {
	if of.Within.IsZero() || id == b.Session {
		return true, nil
	}
	one, err := b.Store.Get(ctx, id)
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cwd, within := one.Keys.Real[0], workspace.Real(of.Within)
	return of.Within.Contains(one.Keys.Roots.Cwd()) || within.Contains(cwd) ||
		slices.ContainsFunc(b.Origins().Of(cwd), within.Contains), nil
}

// Confirm asks the user, with ask, whether to go on if a budget is used up. It reports false if they
// do not want that or cannot be asked. If it is not known what was used, the turn goes on.
func (b *Budgets) Confirm(
	ctx context.Context,
	ask func(context.Context, backend.Question) (backend.Answer, error),
) (goesOn bool) {
	for _, one := range b.All() {
		spent, err := b.spent(ctx, one)
		if err != nil {
			b.Log.Warn("cannot check a budget", "session", b.Session, "error", err)
			continue
		}
		today := time.Now().Format(time.DateOnly)
		if day, _ := b.Exceeds.Load(one); spent < one.Amount || day == today {
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
			b.Exceeds.Store(one, today)
		}
	}
	return true
}

// Refuse answers a prompt with which a budget would be exceeded, as a turn that has failed:
// some clients remove a prompt that was refused, with the answer.
func Refuse(ctx context.Context, u backend.Updates) (backend.Raw, error) {
	if ctx.Err() != nil { // the turn has ended, and the question with it
		return nil, context.Cause(ctx)
	}
	err := u.Update(ctx, backend.Note("The agent did not get this prompt: a budget is used up, "+
		"and you did not choose to go on."))
	return backend.FailedTurn(), err
}

// UsedUp returns notes for the user about the budgets that the turn which has ended, with its cost,
// has used up.
func (b *Budgets) UsedUp(ctx context.Context, cost map[string]float64) (notes []backend.Update) {
	for _, one := range b.All() {
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
