package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/discovery"
)

// kinds are the groups of the tree, in order.
var kinds = [...]struct {
	kind  discovery.Kind
	title string
}{
	{discovery.Instruction, "instructions"},
	{discovery.Skill, "skills"},
	{discovery.Command, "commands"},
	{discovery.MCPServer, "MCP servers (found, not started)"},
}

// printCatalog prints the tree: a block for each folder, in it a group for each kind.
func printCatalog(out io.Writer, c *discovery.Catalog) error {
	var b strings.Builder
	for _, root := range c.Roots() {
		fmt.Fprintf(&b, "%d  %s\n", root.Index, printable(root.Dir.String()))
		found := 0
		for _, k := range kinds {
			var group []discovery.Artifact
			for _, a := range c.Of(k.kind) {
				if a.Root.Index == root.Index {
					group = append(group, a)
				}
			}
			found += len(group)
			printGroup(&b, k.title, group)
		}
		if found == 0 {
			b.WriteString("   nothing\n")
		}
		for _, cut := range c.LimitsReached() {
			if cut.Root.Index == root.Index {
				fmt.Fprintf(&b, "   ! %s\n", printable(cut.String()))
			}
		}
		b.WriteString("\n")
	}
	b.WriteString(tally(c.Artifacts()))
	_, err := io.WriteString(out, b.String())
	return err
}

// printFurther prints what is found for one file.
func printFurther(out io.Writer, list []discovery.Artifact) error {
	var b strings.Builder
	if len(list) == 0 {
		b.WriteString("nothing but the instructions of whole folders\n")
	}
	for _, a := range list {
		printArtifact(&b, "", a)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func printGroup(b *strings.Builder, title string, group []discovery.Artifact) {
	if len(group) == 0 {
		return
	}
	fmt.Fprintf(b, "   %s\n", title)
	for _, a := range group {
		printArtifact(b, "   ", a)
	}
}

// printArtifact prints a line for the artifact, with its mark, and one for each rule that it breaks.
func printArtifact(b *strings.Builder, indent string, a discovery.Artifact) {
	says := short(a.Description)
	if a.Kind == discovery.MCPServer {
		says = printable(a.Description) // a command that somebody may approve is shown whole
	}
	if a.Applies.Mode != "" && a.Applies.Mode != discovery.Always {
		says = strings.TrimPrefix(says+" ["+applying(a.Applies)+"]", " ")
	}
	place := ""
	if rel, err := filepath.Rel(a.Root.Dir.String(), a.Path); err == nil && filepath.ToSlash(rel) != a.Name {
		place = " (" + printable(rel) + ")"
	}
	switch a.State {
	case discovery.Active:
		if says != "" {
			says = ": " + says
		}
		fmt.Fprintf(b, "%s%s %s%s\n", indent, mark(a), printable(a.Name), says)
	default:
		state := strings.ReplaceAll(string(a.State), "_", " ")
		fmt.Fprintf(b, "%s%s %s%s: %s, %s\n", indent, mark(a), printable(a.Name), place, state, printable(a.Reason))
	}
	if a.Server != nil && !a.Server.Env.IsZero() {
		fmt.Fprintf(b, "%s      with the variables %s\n", indent, printable(a.Server.Env.String()))
	}
	if a.Server != nil && !a.Server.Headers.IsZero() {
		fmt.Fprintf(b, "%s      with the headers %s\n", indent, printable(a.Server.Headers.String()))
	}
	for _, in := range a.Imports {
		fmt.Fprintf(b, "%s      with %s\n", indent, printable(in.Ref.Path()))
	}
	for _, d := range a.Diagnostics {
		fmt.Fprintf(b, "%s      %s\n", indent, printable(d.String()))
	}
}

func mark(a discovery.Artifact) string {
	switch {
	case a.State == discovery.Shadowed:
		return "  -"
	case a.State != discovery.Active:
		return "  !"
	case len(a.Diagnostics) > 0:
		return "  *"
	default:
		return "   "
	}
}

// applying says in words when an instruction counts.
func applying(a discovery.Applies) string {
	switch a.Mode {
	case discovery.ByPath:
		return "for " + short(strings.Join(a.Globs, ", "))
	case discovery.ByDescription:
		return "when it fits"
	default:
		return "on request"
	}
}

// tally counts the states.
func tally(list []discovery.Artifact) string {
	n := make(map[discovery.State]int)
	for _, a := range list {
		n[a.State]++
	}
	text := fmt.Sprintf("%d active, %d shadowed, %d invalid", n[discovery.Active], n[discovery.Shadowed], n[discovery.Invalid])
	if large := n[discovery.TooLarge]; large > 0 {
		text += fmt.Sprintf(", %d too large", large)
	}
	return text + "\n"
}

// maxShown is the most characters of a description in the tree.
const maxShown = 90

func short(text string) string {
	if text = printable(text); utf8.RuneCountInString(text) > maxShown {
		return string([]rune(text)[:maxShown-1]) + "…"
	}
	return text
}

// printable is text that a terminal shows and does not obey.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
