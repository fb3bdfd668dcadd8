package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Grouping is what the lines of [Costs] are about.
type Grouping string

// All groupings.
const (
	BySession Grouping = "session"
	ByFolder  Grouping = "folder"
	ByAgent   Grouping = "agent"
	ByDay     Grouping = "day"
)

// Groupings returns all groupings.
func Groupings() []Grouping { return []Grouping{BySession, ByFolder, ByAgent, ByDay} }

// CostQuery selects what [ReadCosts] sums up.
type CostQuery struct {
	// Since is the time of the first reading; the zero time selects all.
	Since time.Time
	By    Grouping
	// Folder, if not zero, selects the sessions with a folder that is this one or in it.
	Folder workspace.Dir
	// Zone is where days begin.
	Zone *time.Location
}

// Costs are what agents reported that sessions have used.
type Costs struct {
	Lines []CostLine `json:"lines"`
	Total CostLine   `json:"total"`
	// Notes say why sums are incomplete.
	Notes []string `json:"notes"`
}

// CostLine is what was used of one session, folder, agent or day.
type CostLine struct {
	// Name is the folder, agent or day, or the id of the session. It is empty in the total.
	Name string `json:"name,omitempty"`
	// Title is that of the session.
	Title string `json:"title,omitempty"`
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

// reported is what an agent reported in a line.
type reported struct {
	turns        int
	cost, tokens bool
}

// quarter divides days wherever somebody is.
const quarter = 15 * time.Minute

// ReadCosts sums up what the sessions of a store have used. Currencies are not added.
func ReadCosts(ctx context.Context, store sessionstore.Store, q CostQuery) (Costs, error) {
	asked := sessionstore.ChargeQuery{Since: q.Since}
	if q.By == ByDay {
		asked.Every = quarter
	}
	charges, err := store.Sums(ctx, asked)
	if err != nil {
		return Costs{}, err
	}
	r := costReader{query: q, store: store, known: map[sessionstore.ID]*sessionstore.Session{},
		lines: map[string]*CostLine{}, total: newCostLine("", ""),
		early: map[sessionstore.ID]bool{}}
	for _, c := range charges {
		if err := r.add(ctx, c); err != nil {
			return Costs{}, err
		}
	}
	return r.costs(), nil
}

// costReader is a run of [ReadCosts].
type costReader struct {
	query CostQuery
	store sessionstore.Sessions
	known map[sessionstore.ID]*sessionstore.Session // nil for those that do not count
	lines map[string]*CostLine
	total *CostLine
	early map[sessionstore.ID]bool // used before they were counted
}

func newCostLine(name, title string) *CostLine {
	return &CostLine{Name: name, Title: title, Cost: map[string]float64{},
		Tokens: map[sessionstore.Meter]float64{}, agents: map[sessionstore.Agent]*reported{}}
}

// add adds a charge to its line and to the total.
func (r *costReader) add(ctx context.Context, c sessionstore.Charge) error {
	one, err := r.session(ctx, c.Session)
	if err != nil || one == nil {
		return err
	}
	name, title := "", ""
	switch r.query.By {
	case BySession:
		name, title = string(one.ID), ListedTitle(*one)
	case ByFolder:
		name = one.Keys.Roots.Cwd().String()
	case ByAgent:
		name = strings.TrimSpace(c.Agent.Kind + " " + c.Agent.Profile)
	case ByDay:
		name = c.At.In(r.query.Zone).Format(time.DateOnly)
	}
	line := r.lines[name]
	if line == nil {
		line = newCostLine(name, title)
		r.lines[name] = line
	}
	line.add(c)
	r.total.add(c)
	if c.Mark == sessionstore.BeforeMark || c.Mark == sessionstore.PartialMark {
		r.early[c.Session] = true
	}
	return nil
}

// session returns a session, or nil if it does not count.
func (r *costReader) session(
	ctx context.Context, id sessionstore.ID,
) (*sessionstore.Session, error) {
	if one, ok := r.known[id]; ok {
		return one, nil
	}
	one, err := r.store.Get(ctx, id)
	switch {
	case errors.As(err, new(*sessionstore.NotFoundError)): // it was deleted since
		r.known[id] = nil
	case err != nil:
		return nil, err
	case !r.query.Folder.IsZero() && !isIn(one.Keys, r.query.Folder):
		r.known[id] = nil
	default:
		r.known[id] = &one
	}
	return r.known[id], nil
}

// isIn reports whether a session has a folder that is dir or in it.
func isIn(k sessionstore.Keys, dir workspace.Dir) bool {
	real := workspace.Real(dir)
	for _, d := range k.Roots.All() {
		if dir.Contains(d) {
			return true
		}
	}
	return slices.ContainsFunc(k.Real, real.Contains)
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
		if r.query.By != ByDay {
			for _, unit := range units {
				if by := cmp.Compare(b.Cost[unit], a.Cost[unit]); by != 0 {
					return by
				}
			}
			if by := cmp.Compare(b.Turns, a.Turns); by != 0 {
				return by
			}
		}
		return cmp.Compare(a.Name, b.Name)
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
		var missing []string
		if !from.cost {
			missing = append(missing, "cost")
		}
		if !from.tokens {
			missing = append(missing, "tokens")
		}
		if len(missing) > 0 {
			notes = append(notes, fmt.Sprintf("%s reported no %s (%s)", costAgent(agent),
				strings.Join(missing, " and no "), text.Count(from.turns, "turn", "turns")))
		}
	}
	slices.Sort(notes)
	return notes
}

// costAgent returns how people call an agent.
func costAgent(a sessionstore.Agent) string {
	if a.Kind == model.Kind {
		return "the model"
	}
	return text.Printable(cmp.Or(a.Profile, a.Kind))
}
