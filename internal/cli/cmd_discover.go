package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

func newDiscover(set *settings) *cobra.Command {
	r, file := rootFlags{cwd: "."}, ""
	return set.newCommand("discover", noArgs, needsState,
		flags{"cwd": &r.cwd, "dir": &r.dirs, "for": &file, "json": &set.json, "mounts": nil},
		func(cmd *cobra.Command, _ []string) error { return discover(cmd.Context(), set, r, file) })
}

// discover shows what is found in the folders that the flags name, or what applies to a file.
func discover(ctx context.Context, set *settings, r rootFlags, file string) error {
	w, declared, err := set.openRoots(ctx, r)
	if err != nil {
		return err
	}
	defer w.Close()
	catalog, err := discovery.Scan(ctx, w)
	if err != nil {
		return err
	}
	if file != "" {
		return printFor(ctx, set, catalog, file)
	}
	files, err := catalog.WorkspaceFiles(ctx)
	if err != nil {
		return err
	}
	f := findings{catalog, declared, files}
	err = set.print(f, func() error { return f.print(set.out) })
	return cmp.Or(err, problems(catalog.Artifacts(), catalog.LimitsReached()))
}

// printFor prints what applies to one file.
func printFor(ctx context.Context, set *settings, catalog *discovery.Catalog, file string) error {
	paths, err := usage.AbsolutePaths(file)
	if err != nil {
		return err
	}
	list, err := catalog.For(ctx, paths[0])
	if errors.As(err, new(*workspace.OutsideError)) {
		return usage.Errorf("--for: %s is in none of the folders: name a file in one of them",
			text.Printable(paths[0]))
	}
	if err != nil {
		return err
	}
	err = set.print(append([]discovery.Artifact{}, list...),
		func() error { return printList(set.out, list) })
	return cmp.Or(err, problems(list, nil))
}

// problems returns an error if something cannot be used. The output has already explained why.
func problems(list []discovery.Artifact, limits []discovery.Limit) error {
	broken := 0
	for _, a := range list {
		if a.State == discovery.Invalid || a.State == discovery.TooLarge {
			broken++
		}
	}
	switch {
	case broken > 0:
		return fmt.Errorf("%d of %d artifacts cannot be used", broken, len(list))
	case len(limits) > 0:
		return fmt.Errorf("not everything could be searched: %s", limits[0])
	default:
		return nil
	}
}

// kinds are the groups of artifacts, in order.
var kinds = [...]struct {
	kind  discovery.Kind
	title string
}{
	{discovery.Instruction, "instructions"},
	{discovery.Skill, "skills"},
	{discovery.Command, "commands"},
	{discovery.MCPServer, "MCP servers (found, not started)"},
	{discovery.Plugin, "plugins (found, not used)"},
}

// findings are what discover prints.
type findings struct {
	*discovery.Catalog
	declared map[workspace.Dir]string // the settings that declare roots
	files    []discovery.WorkspaceFile
}

// MarshalJSON implements [json.Marshaler].
func (f findings) MarshalJSON() ([]byte, error) {
	catalog, err := json.Marshal(f.Catalog)
	files, failed := json.Marshal(append([]discovery.WorkspaceFile{}, f.files...))
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	return strictjson.Set(catalog, "workspaceFiles", files), nil
}

// print prints a block for each folder.
func (f findings) print(out io.Writer) error {
	var b strings.Builder
	for _, root := range f.Roots() {
		f.printRoot(&b, root)
		b.WriteString("\n")
	}
	b.WriteString(tally(f.Artifacts()))
	return terminal.Say(out, "%s", strings.TrimSuffix(b.String(), "\n"))
}

// printRoot prints a folder with a group for each kind of artifact. The first folder has the
// workspace files.
func (f findings) printRoot(b *strings.Builder, root workspace.Root) {
	fmt.Fprintf(b, "%d  %s%s", root.Index, text.Printable(root.Dir.String()), root.Grant.Mark())
	if from := f.declared[root.Dir]; root.Index > 0 && from != "" {
		fmt.Fprintf(b, "  (%s)", text.Printable(from))
	}
	b.WriteString("\n")
	empty := b.Len()
	for _, k := range kinds {
		title := "   " + k.title + "\n"
		for _, a := range f.Of(k.kind) {
			if a.Root.Index == root.Index {
				b.WriteString(title)
				title = ""
				printArtifact(b, "   ", a)
			}
		}
	}
	if root.Index == 0 {
		printWorkspaceFiles(b, root, f.files)
	}
	if b.Len() == empty {
		b.WriteString("   nothing\n")
	}
	for _, limit := range f.LimitsReached() {
		if limit.Root.Index == root.Index {
			fmt.Fprintf(b, "   ! %s\n", text.Printable(limit.String()))
		}
	}
}

// printWorkspaceFiles prints the folders that files in the root list.
func printWorkspaceFiles(b *strings.Builder, root workspace.Root, files []discovery.WorkspaceFile) {
	if len(files) == 0 {
		return
	}
	b.WriteString("   workspace files (their folders are not part of a session until you add " +
		"them)\n")
	for _, f := range files {
		rel, err := filepath.Rel(root.Dir.String(), f.Path)
		if err != nil {
			rel = f.Path
		}
		folders := make([]string, len(f.Folders))
		for i, dir := range f.Folders {
			folders[i] = text.Printable(dir.String())
		}
		fmt.Fprintf(b, "      %s: %s\n", text.Printable(rel), strings.Join(folders, ", "))
	}
}

func printList(out io.Writer, list []discovery.Artifact) error {
	var b strings.Builder
	if len(list) == 0 {
		b.WriteString("no additional instructions\n")
	}
	for _, a := range list {
		printArtifact(&b, "", a)
	}
	return terminal.Say(out, "%s", strings.TrimSuffix(b.String(), "\n"))
}

// printArtifact prints a line for the artifact, with its mark, and one for each rule it breaks.
func printArtifact(b *strings.Builder, indent string, a discovery.Artifact) {
	description := brief(a.Description)
	if a.Kind == discovery.MCPServer {
		// A command that the user may approve is shown in full.
		description = text.Printable(a.Description)
	}
	if a.Applies.Mode != "" && a.Applies.Mode != discovery.Always {
		description = strings.TrimPrefix(description+" ["+applies(a.Applies)+"]", " ")
	}
	place := ""
	if rel, err := filepath.Rel(a.Root.Dir.String(), a.Path); err == nil &&
		filepath.ToSlash(rel) != a.Name {
		place = " (" + text.Printable(rel) + ")"
	}
	said := ""
	switch {
	case a.State == discovery.Unused && description != "":
		said = fmt.Sprintf(" (%s): %s", description, text.Printable(a.Reason))
	case a.State == discovery.Unused:
		said = ": " + text.Printable(a.Reason)
	case a.State != discovery.Active:
		state := strings.ReplaceAll(string(a.State), "_", " ")
		said = fmt.Sprintf("%s: %s, %s", place, state, text.Printable(a.Reason))
	case description != "":
		said = ": " + description
	}
	fmt.Fprintf(b, "%s%s %s%s\n", indent, mark(a), text.Printable(a.Name), said)
	more := func(what, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s      %s%s\n", indent, what, text.Printable(value))
		}
	}
	if a.Server != nil {
		more("with the variables ", a.Server.Env.String())
		more("with the variables in the file ", a.Server.EnvFile)
		more("with the headers ", a.Server.Headers.String())
	}
	for _, in := range a.Imports {
		more("with ", in.Ref.Path())
	}
	for _, d := range a.Diagnostics {
		more("", d)
	}
}

func mark(a discovery.Artifact) string {
	switch {
	case a.State == discovery.Shadowed, a.State == discovery.Unused:
		return "  -"
	case a.State != discovery.Active:
		return "  !"
	case len(a.Diagnostics) > 0:
		return "  *"
	default:
		return "   "
	}
}

// applies describes when an instruction applies.
func applies(a discovery.Applies) string {
	switch a.Mode {
	case discovery.ByPath:
		return "for " + brief(strings.Join(a.Globs, ", "))
	case discovery.ByDescription:
		return "when it fits"
	default:
		return "on request"
	}
}

// tally counts the artifacts by state.
func tally(list []discovery.Artifact) string {
	n := make(map[discovery.State]int)
	for _, a := range list {
		n[a.State]++
	}
	text := fmt.Sprintf("%d active, %d shadowed, %d invalid", n[discovery.Active],
		n[discovery.Shadowed], n[discovery.Invalid])
	if unused := n[discovery.Unused]; unused > 0 {
		text += fmt.Sprintf(", %d not used", unused)
	}
	if large := n[discovery.TooLarge]; large > 0 {
		text += fmt.Sprintf(", %d too large", large)
	}
	return text + "\n"
}

// brief returns the beginning of a description on one line.
func brief(s string) string { return text.Line(text.Printable(s), 90) }
