package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/acp-agent/acp-agent/workspace"
)

// Catalog is the result of a scan. It is immutable and safe for concurrent use. [Catalog.For] and
// [Catalog.Expand] read files when they are called. Callers may modify the slices that methods
// return, but not what the artifacts in them refer to.
type Catalog struct {
	ws        *workspace.Workspace
	limits    limits
	artifacts []Artifact // by root and rank
	reached   []Limit
}

// Artifacts returns all artifacts by root, then by convention, then by path, whatever their state.
func (c *Catalog) Artifacts() []Artifact { return slices.Clone(c.artifacts) }

// Of returns the artifacts of one kind, in the same order.
func (c *Catalog) Of(kind Kind) []Artifact {
	return filter(c.artifacts, func(a *Artifact) bool { return a.Kind == kind })
}

// Active returns the active artifacts of one kind, in the same order.
func (c *Catalog) Active(kind Kind) []Artifact {
	return filter(c.artifacts, func(a *Artifact) bool {
		return a.Kind == kind && a.State == Active
	})
}

// Named returns the artifacts of one kind and name: first the active one, if there is one, then the
// others.
func (c *Catalog) Named(kind Kind, name string) []Artifact {
	named := func(active bool) []Artifact {
		return filter(c.artifacts, func(a *Artifact) bool {
			return a.Kind == kind && a.Name == name && (a.State == Active) == active
		})
	}
	return append(named(true), named(false)...)
}

// filter returns the artifacts for which keep returns true.
func filter(all []Artifact, keep func(*Artifact) bool) []Artifact {
	var list []Artifact
	for i := range all {
		if a := &all[i]; keep(a) {
			list = append(list, *a)
		}
	}
	return list
}

// Share returns the first artifacts of each root, at most so many in all, in their order. It takes
// the first of each root, then the second of each, and so on.
func Share(list []Artifact, most int) []Artifact {
	turn, order := make([]int, len(list)), make([]int, len(list))
	seen := make(map[int]int) // artifacts of each root
	for i, a := range list {
		turn[i], order[i] = seen[a.Root.Index], i
		seen[a.Root.Index]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return turn[a] - turn[b] })
	order = slices.Sorted(slices.Values(order[:min(most, len(order))]))
	some := make([]Artifact, len(order))
	for i, at := range order {
		some[i] = list[at]
	}
	return some
}

// LimitsReached returns the limits that ended the scan of a root early, in the order of the roots.
func (c *Catalog) LimitsReached() []Limit { return slices.Clone(c.reached) }

// Roots returns the roots that were scanned.
func (c *Catalog) Roots() []workspace.Root { return c.ws.Opened() }

// body returns the text of a skill or command as the file is now, without frontmatter.
func (c *Catalog) body(ctx context.Context, a Artifact) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if a.Kind != Skill && a.Kind != Command { // the configuration of servers may contain secrets
		return "", fmt.Errorf("%s is neither a skill nor a command", a.Path)
	}
	file, err := readPath(c.ws, a.Path, c.limits.fileSize)
	if err != nil {
		return "", err
	}
	front := a.frontmatter(file.text)
	if front.fault != "" {
		return "", fmt.Errorf("%s: %s", a.Path, front.fault)
	}
	return front.body, nil
}

// SlashCommand is a skill or command as it is announced to a client.
type SlashCommand struct {
	// Name is the text to type after the slash.
	Name string
	// Description says what it does, Hint what to type after the name.
	Description, Hint string
	// Artifact is the skill or command. [Catalog.Expand] returns its text.
	Artifact Artifact
}

// SlashCommands returns the active skills and commands that can be called by name. taken has those
// whose name is reserved or belongs to an earlier one.
func (c *Catalog) SlashCommands(reserved ...string) (offered, taken []SlashCommand) {
	used := make(map[string]bool, len(reserved))
	for _, name := range reserved {
		used[name] = true
	}
	for _, a := range c.artifacts {
		if a.State != Active || a.Uncallable || (a.Kind != Skill && a.Kind != Command) {
			continue
		}
		s := SlashCommand{typeable(a.Name), a.Description, a.Hint, a}
		if used[s.Name] {
			taken = append(taken, s)
			continue
		}
		used[s.Name] = true
		offered = append(offered, s)
	}
	return offered, taken
}

// MarshalJSON encodes the catalog with the members roots (index, path, realPath, readOnly of each),
// artifacts (in the order of [Catalog.Artifacts]) and cuts (the limits reached: root, limit, place
// and at of each). All are arrays.
func (c *Catalog) MarshalJSON() ([]byte, error) {
	type root struct {
		Index    int    `json:"index"`
		Path     string `json:"path"`
		RealPath string `json:"realPath"`
		ReadOnly bool   `json:"readOnly,omitempty"`
	}
	type limit struct {
		Root  int    `json:"root"`
		Limit string `json:"limit"`
		Place string `json:"place"`
		At    string `json:"at"`
	}
	w := struct {
		Roots     []root     `json:"roots"`
		Artifacts []Artifact `json:"artifacts"`
		Cuts      []limit    `json:"cuts"`
	}{Artifacts: append([]Artifact{}, c.artifacts...), Cuts: []limit{}}
	for _, r := range c.Roots() {
		w.Roots = append(w.Roots, root{r.Index, r.Dir.String(), r.Real.String(),
			r.Grant == workspace.ReadOnly})
	}
	for _, l := range c.reached {
		w.Cuts = append(w.Cuts, limit{l.Root.Index, l.limit, l.pattern, l.path})
	}
	return json.Marshal(w)
}
