package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Costs are what agents reported that sessions have used.
type Costs struct {
	Lines []CostLine `json:"lines"`
	Total CostLine   `json:"total"`
	// Notes say why sums are incomplete.
	Notes []string `json:"notes"`
}

// CostLine has the use of the sessions in one working directory.
type CostLine struct {
	// Name is the directory. It is empty in the total.
	Name string `json:"name,omitempty"`
	// Cost is by currency or unit.
	Cost map[string]float64 `json:"cost"`
	// Tokens are by meter. Those that no agent reported are missing.
	Tokens map[sessionstore.Meter]float64 `json:"tokens"`
	Turns  int                            `json:"turns"`
	// More was used than Cost or Tokens say.
	CostIncomplete   bool `json:"costIncomplete"`
	TokensIncomplete bool `json:"tokensIncomplete"`

	agents map[sessionstore.Agent]*reported
}

// reported has the values that an agent reported in a line.
type reported struct {
	turns        int
	cost, tokens bool
}

// ReadCosts sums up what the sessions of a store have used, by working directory. Currencies are
// not added.
func ReadCosts(ctx context.Context, store sessionstore.Store) (Costs, error) {
	charges, err := store.Sums(ctx, sessionstore.ChargeQuery{})
	if err != nil {
		return Costs{}, err
	}
	r := costReader{store: store, folders: map[sessionstore.ID]string{},
		lines: map[string]*CostLine{}, total: newCostLine(""), early: map[sessionstore.ID]bool{}}
	for _, c := range charges {
		if err := r.add(ctx, c); err != nil {
			return Costs{}, err
		}
	}
	return r.costs(), nil
}

// costReader is a run of [ReadCosts].
type costReader struct {
	store   sessionstore.Sessions
	folders map[sessionstore.ID]string // "" for those that were deleted since
	lines   map[string]*CostLine
	total   *CostLine
	early   map[sessionstore.ID]bool // used before they were counted
}

func newCostLine(name string) *CostLine {
	return &CostLine{Name: name, Cost: map[string]float64{},
		Tokens: map[sessionstore.Meter]float64{}, agents: map[sessionstore.Agent]*reported{}}
}

// add adds a charge to its line and to the total.
func (r *costReader) add(ctx context.Context, c sessionstore.Charge) error {
	folder, err := r.folder(ctx, c.Session)
	if err != nil || folder == "" {
		return err
	}
	line := r.lines[folder]
	if line == nil {
		line = newCostLine(folder)
		r.lines[folder] = line
	}
	line.add(c)
	r.total.add(c)
	if c.Mark == sessionstore.BeforeMark || c.Mark == sessionstore.PartialMark {
		r.early[c.Session] = true
	}
	return nil
}

// folder returns the working directory of a session, "" if it was deleted since.
func (r *costReader) folder(ctx context.Context, id sessionstore.ID) (string, error) {
	folder, known := r.folders[id]
	if known {
		return folder, nil
	}
	one, err := r.store.Get(ctx, id)
	switch {
	case err == nil:
		folder = one.Keys.Roots.Cwd().String()
	case !errors.As(err, new(*sessionstore.NotFoundError)):
		return "", err
	}
	r.folders[id] = folder
	return folder, nil
}

// add adds a charge.
func (l *CostLine) add(c sessionstore.Charge) {
	from := l.agents[c.Agent]
	if from == nil {
		from = &reported{}
		l.agents[c.Agent] = from
	}
	switch c.Meter {
	case sessionstore.TurnMeter:
		l.Turns += int(c.Amount)
		from.turns += int(c.Amount)
	case sessionstore.CostMeter:
		if c.Amount > 0 {
			l.Cost[c.Unit] += c.Amount
			from.cost = true
		}
	default:
		l.Tokens[c.Meter] += c.Amount
		from.tokens = true
	}
	if c.Mark == sessionstore.BeforeMark || c.Mark == sessionstore.PartialMark {
		l.CostIncomplete = true
	}
}

// finish determines what is incomplete because agents did not report it.
func (l *CostLine) finish() {
	for agent, from := range l.agents {
		if from.turns > 0 && agent.Kind != explore.Kind { // which uses nothing
			l.CostIncomplete = l.CostIncomplete || !from.cost
			l.TokensIncomplete = l.TokensIncomplete || !from.tokens
		}
	}
}

// costs returns the result.
func (r *costReader) costs() Costs {
	r.total.finish()
	c := Costs{Lines: []CostLine{}, Total: *r.total, Notes: r.notes()}
	for _, line := range r.lines {
		line.finish()
		c.Lines = append(c.Lines, *line)
	}
	units := slices.Sorted(maps.Keys(r.total.Cost))
	slices.SortFunc(c.Lines, func(a, b CostLine) int {
		for _, unit := range units {
			if by := cmp.Compare(b.Cost[unit], a.Cost[unit]); by != 0 {
				return by
			}
		}
		return cmp.Or(cmp.Compare(b.Turns, a.Turns), cmp.Compare(a.Name, b.Name))
	})
	return c
}

// notes say why sums are incomplete.
func (r *costReader) notes() []string {
	notes := []string{}
	if n := len(r.early); n > 0 {
		notes = append(notes, text.Count(n, "session", "sessions")+
			" had been used before acp-agent could count")
	}
	for agent, from := range r.total.agents {
		if from.turns == 0 || agent.Kind == explore.Kind {
			continue
		}
		said := ""
		switch {
		case !from.cost && !from.tokens:
			said = "reports neither cost nor tokens"
		case !from.cost:
			said = "reports tokens, without their price"
		case !from.tokens:
			said = "reports no tokens"
		default:
			continue
		}
		notes = append(notes, fmt.Sprintf("%s %s (%s)", conversation.AgentName(agent), said,
			text.Count(from.turns, "turn", "turns")))
	}
	slices.Sort(notes)
	return notes
}
