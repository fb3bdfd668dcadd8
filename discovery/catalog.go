package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/acp-agent/acp-agent/workspace"
)

// Catalog is what a scan found. It is immutable and safe for concurrent use. [Catalog.For] and [Catalog.Text] look at the
// disk when they are called; all else is as it was scanned. Slices that it returns are the caller's, but not what
// the artifacts in them lead to.
type Catalog struct {
	ws        *workspace.Workspace
	o         Options
	rows      []row
	artifacts []Artifact // of all roots, by rank
	cuts      []Cut
}

// Artifacts are all artifacts: by root, then by convention, then by path. What does not count is among them.
func (c *Catalog) Artifacts() []Artifact { return slices.Clone(c.artifacts) }

// Of are the artifacts of one kind, in the same order.
func (c *Catalog) Of(kind Kind) []Artifact {
	return c.where(func(a *Artifact) bool { return a.Kind == kind })
}

// Active are the artifacts of one kind that count, in the same order.
func (c *Catalog) Active(kind Kind) []Artifact {
	return c.where(func(a *Artifact) bool { return a.Kind == kind && a.State == Active })
}

// Named are the artifacts of one kind and name: first the one that counts, if one does, then the others.
func (c *Catalog) Named(kind Kind, name string) []Artifact {
	named := func(active bool) []Artifact {
		return c.where(func(a *Artifact) bool {
			return a.Kind == kind && a.Name == name && (a.State == Active) == active
		})
	}
	return append(named(true), named(false)...)
}

func (c *Catalog) where(take func(*Artifact) bool) []Artifact {
	var list []Artifact
	for i := range c.artifacts {
		if a := &c.artifacts[i]; take(a) {
			list = append(list, *a)
		}
	}
	return list
}

// Cuts are the bounds that ended a search early, in the order of the roots.
func (c *Catalog) Cuts() []Cut {
	return slices.Clone(c.cuts)
}

// Roots are the roots that were searched.
func (c *Catalog) Roots() []workspace.Root { return c.ws.Opened() }

var errNoText = errors.New("the configuration of an MCP server is not shown as text: it may hold secrets")

// Text is the text of an artifact: of an instruction as it was scanned, of a skill or command as the file is now, without
// its frontmatter. The error says why there is none.
func (c *Catalog) Text(ctx context.Context, a Artifact) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	switch a.Kind {
	case Instruction:
		return a.text, nil
	case MCPServer:
		return "", errNoText
	}
	f, err := c.ws.Open(a.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	a.Size = info.Size()
	text, ok := newScanner(c.ws, a.Root, c.o).readText(&a, f)
	if !ok {
		return "", fmt.Errorf("%s: %s", a.Path, a.Reason)
	}
	front := parseFrontmatter(text, c.o.MaxFrontmatter)
	if front.fault != "" {
		return "", fmt.Errorf("%s: %s", a.Path, front.fault)
	}
	return front.body, nil
}

// SlashCommand is a skill or command as ACP announces it.
type SlashCommand struct {
	// Name is what is typed after the slash.
	Name string
	// Description says what it does, Hint what to type after the name.
	Description, Hint string
	// Artifact is the skill or command. Its text is had by [Catalog.Text].
	Artifact Artifact
}

// SlashCommands are the active skills and commands that can be called by name. Names in reserved, such as those of a
// runtime's own commands, are not offered: what has such a name is in taken.
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
