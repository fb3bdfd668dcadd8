package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

const (
	// listSize is the number of sessions in a part of the list, listScan how many may be looked at
	// for one.
	listSize = 50
	listScan = 20_000
	// maxFacets and maxArtifacts limit how many folders, and what is found in them, are listed.
	maxFacets    = 500
	maxArtifacts = 1000
)

// record is a session in the list.
type record struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Agent    string    `json:"agent"`
	Folders  []string  `json:"folders"`
	ReadOnly []string  `json:"readOnly,omitempty"` // those of folders that may only be read
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Turns    int64     `json:"turns"`
	Archived bool      `json:"archived,omitempty"`
	// Cost is the amount that its agent reported, with the currency.
	Cost []string `json:"cost,omitempty"`
}

func newRecord(s sessionstore.Session) record {
	r := record{ID: string(s.ID), Title: text.Line(text.Plain(s.ListedTitle()), 300),
		Agent: conversation.AgentName(s.Agent), Created: s.Created, Updated: s.Updated, Turns: s.Turns,
		Archived: s.Archived}
	for _, dir := range s.Keys.Roots.All() {
		r.Folders = append(r.Folders, text.Printable(dir.String()))
		if s.Keys.Roots.Grant(dir) == workspace.ReadOnly {
			r.ReadOnly = append(r.ReadOnly, text.Printable(dir.String()))
		}
	}
	return r
}

// isEmpty reports whether a session has neither a turn nor a title: an editor has opened it, and
// nobody has used it.
func isEmpty(s sessionstore.Session) bool { return s.Turns == 0 && s.Title == "" }

// matches reports whether the list shows a session for these filters.
func (r record) matches(filter url.Values) bool {
	folder, agent := filter.Get("folder"), filter.Get("agent")
	if folder != "" && !slices.Contains(r.Folders, folder) || agent != "" && r.Agent != agent {
		return false
	}
	all := strings.Join(append(r.Folders, r.ID, r.Title, r.Agent), "\n")
	return text.HasWords(all, strings.ReplaceAll(filter.Get("text"), `"`, " "))
}

// list is a part of the list of sessions.
type list struct {
	Sessions []record            `json:"sessions"`
	Next     sessionstore.Cursor `json:"next,omitempty"`
}

// sessions returns the sessions that match the filters, those with the newest activity first.
func (o Options) sessions(ctx context.Context, filter url.Values) (any, error) {
	q, found, scanned := listQuery(filter), list{Sessions: []record{}}, 0
	for one, err := range sessions.All(ctx, o.Store, q) {
		if err != nil {
			return nil, err
		}
		scanned++
		if r := newRecord(one); !isEmpty(one) && r.matches(filter) {
			if r.Cost, err = o.cost(ctx, one.ID); err != nil {
				return nil, err
			}
			found.Sessions = append(found.Sessions, r)
		}
		if len(found.Sessions) == listSize || scanned == listScan {
			found.Next = q.After(sessionstore.Position{Updated: one.Updated, ID: one.ID})
			break
		}
	}
	return found, nil
}

// cost returns what a session has cost, as its agent has reported it.
func (o Options) cost(ctx context.Context, id sessionstore.ID) ([]string, error) {
	sums, err := o.Store.Sums(ctx, sessionstore.ChargeQuery{
		Session: id, Meter: sessionstore.CostMeter})
	total := map[string]float64{}
	for _, c := range sums {
		if c.Amount > 0 {
			total[c.Unit] += c.Amount
		}
	}
	return text.Amounts(total), err
}

func listQuery(filter url.Values) sessionstore.Query {
	q := sessionstore.Query{Archive: sessionstore.WithoutArchived,
		Cursor: sessionstore.Cursor(filter.Get("cursor"))}
	if filter.Has("archived") {
		q.Archive = sessionstore.OnlyArchived
	}
	return q
}

// facet is a value that sessions have in common, and their number.
type facet struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// facets returns the folders and agents of all sessions, those of most first.
func (o Options) facets(ctx context.Context, filter url.Values) (any, error) {
	folders, agents, total := map[string]int{}, map[string]int{}, 0
	for one, err := range sessions.All(ctx, o.Store, listQuery(filter)) {
		if err != nil {
			return nil, err
		}
		if isEmpty(one) {
			continue
		}
		r := newRecord(one)
		total++
		agents[r.Agent]++
		for _, folder := range r.Folders {
			folders[folder]++
		}
	}
	return map[string]any{
		"total": total, "folders": sorted(folders), "agents": sorted(agents),
	}, nil
}

func sorted(counts map[string]int) []facet {
	all := make([]facet, 0, len(counts))
	for name, n := range counts {
		all = append(all, facet{name, n})
	}
	slices.SortFunc(all, func(a, b facet) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), maxFacets)]
}

// hit is a message that contains what somebody looks for.
type hit struct {
	record
	Role string `json:"role"`
	// At is in front of the message: its segment begins there.
	At place `json:"at"`
	// Pieces are the parts of a line: every second one is a match.
	Pieces []string `json:"pieces"`
}

// search returns the messages that contain a text.
func (o Options) search(ctx context.Context, q url.Values) (any, error) {
	hits := []hit{}
	all, err := o.Store.Search(ctx, sessionstore.SearchQuery{Text: q.Get("text")})
	for _, one := range all {
		h, end := hit{record: newRecord(one.Session), Role: string(one.Role),
			At: newPlace(one.Segment, 0)}, 0
		for _, m := range one.Matches {
			h.Pieces = append(h.Pieces, plainLine(one.Line[end:m.Start]),
				plainLine(one.Line[m.Start:m.End]))
			end = m.End
		}
		h.Pieces = append(h.Pieces, plainLine(one.Line[end:]))
		hits = append(hits, h)
	}
	return hits, err
}

// plainLine returns a part of a line as it can be shown. White space at its ends stays.
func plainLine(s string) string { return strings.ReplaceAll(text.Plain(s), "\n", " ") }

// details is a session with what is known about it.
type details struct {
	record
	Details
	States []json.RawMessage `json:"states"`
}

// session returns a session.
func (o Options) session(ctx context.Context, q url.Values) (any, error) {
	one, err := o.Store.Get(ctx, sessionstore.ID(q.Get("id")))
	if err != nil {
		return nil, err
	}
	states, err := o.Store.States(ctx, one.ID)
	if err != nil {
		return nil, err
	}
	d := details{record: newRecord(one)}
	if o.Details != nil {
		d.Details = o.Details(one)
	}
	if d.Cost, err = o.cost(ctx, one.ID); err != nil {
		return nil, err
	}
	for _, u := range states {
		d.States = append(d.States, text.EscapeJSON(u.Raw))
	}
	return d, nil
}

// artifact is something in a folder that is meant for agents.
type artifact struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Folder      int    `json:"folder"`
	Path        string `json:"path"`
	State       string `json:"state"`
	Reason      string `json:"reason,omitempty"`
}

// context returns what a session finds in its folders as they are now.
func (o Options) context(ctx context.Context, q url.Values) (any, error) {
	one, err := o.Store.Get(ctx, sessionstore.ID(q.Get("id")))
	if err != nil {
		return nil, err
	}
	w, err := workspace.Open(ctx, one.Keys.Roots, o.Workspace)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	catalog, err := discovery.Scan(ctx, w)
	if err != nil {
		return nil, err
	}
	found := []artifact{}
	for _, a := range catalog.Artifacts() {
		if len(found) == maxArtifacts {
			break
		}
		found = append(found, artifact{
			Kind: string(a.Kind), Name: text.Printable(a.Name),
			Description: text.Line(text.Plain(a.Description), 300), Folder: a.Root.Index,
			Path: text.Printable(a.Path), State: string(a.State),
			Reason: text.Line(text.Plain(a.Reason), 300),
		})
	}
	return found, nil
}
