package sessions

import (
	"cmp"
	"context"
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
	folders := make(map[sessionstore.ID]string)
	for one, err := range All(ctx, store, sessionstore.Query{}) {
		if err != nil {
			return Costs{}, err
		}
		folders[one.ID] = one.Keys.Roots.Cwd().String()
	}
	lines, total := make(map[string]*CostLine), newCostLine("")
	early := make(map[sessionstore.ID]bool) // used before they were counted
	for _, c := range charges {
		folder, known := folders[c.Session]
		if !known {
			continue // it was deleted since
		}
		if lines[folder] == nil {
			lines[folder] = newCostLine(folder)
		}
		lines[folder].add(c)
		total.add(c)
		if isEarly(c) {
			early[c.Session] = true
		}
	}
	notes := append([]string{}, total.finish()...) // not null
	if n := len(early); n > 0 {
		notes = append(notes, text.Count(n, "session", "sessions")+
			" had been used before acp-agent could count")
	}
	slices.Sort(notes)
	costs := Costs{Lines: []CostLine{}, Total: *total, Notes: notes}
	for _, line := range lines {
		line.finish()
		costs.Lines = append(costs.Lines, *line)
	}
	costs.sort()
	return costs, nil
}

// isEarly reports whether a session had used more than a charge says before it was counted.
func isEarly(c sessionstore.Charge) bool {
	return c.Mark == sessionstore.BeforeMark || c.Mark == sessionstore.PartialMark
}

// sort orders the lines by what they cost.
func (c *Costs) sort() {
	units := slices.Sorted(maps.Keys(c.Total.Cost))
	slices.SortFunc(c.Lines, func(a, b CostLine) int {
		for _, unit := range units {
			if by := cmp.Compare(b.Cost[unit], a.Cost[unit]); by != 0 {
				return by
			}
		}
		return cmp.Or(cmp.Compare(b.Turns, a.Turns), cmp.Compare(a.Name, b.Name))
	})
}

func newCostLine(name string) *CostLine {
	return &CostLine{Name: name, Cost: map[string]float64{},
		Tokens: map[sessionstore.Meter]float64{}, agents: map[sessionstore.Agent]*reported{}}
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
	l.CostIncomplete = l.CostIncomplete || isEarly(c)
}

// finish determines what is incomplete because agents did not report it, and says so.
func (l *CostLine) finish() (notes []string) {
	for agent, from := range l.agents {
		usesNothing := from.turns == 0 || agent.Kind == explore.Kind
		if usesNothing || from.cost && from.tokens {
			continue
		}
		l.CostIncomplete = l.CostIncomplete || !from.cost
		l.TokensIncomplete = l.TokensIncomplete || !from.tokens
		said := "reports no tokens"
		switch {
		case !from.cost && !from.tokens:
			said = "reports neither cost nor tokens"
		case !from.cost:
			said = "reports tokens, without their price"
		}
		notes = append(notes, fmt.Sprintf("%s %s (%s)", conversation.AgentName(agent), said,
			text.Count(from.turns, "turn", "turns")))
	}
	return notes
}
