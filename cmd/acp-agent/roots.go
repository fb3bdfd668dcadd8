package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/workspace"
)

// newRoots checks a root set without opening a session.
func newRoots(s streams, f *serveFlags) *cobra.Command {
	var r runFlags
	cmd := &cobra.Command{
		Use:   "roots [--cwd DIR] [--dir DIR]...",
		Short: "Check a set of root folders and explain it",
		Long: `roots says what a session on the folders would have: each root's spelling, real path and file URI, in
order, and what is wrong with it. It exits with 1 if a session would be refused.`,
		Example: "  acp-agent roots --cwd app --dir ../shared --dir ../skills",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return checkRoots(cmd.Context(), s, *f, r)
		},
	}
	r.rootFlags(cmd)
	cmd.Flags().BoolVar(&r.json, "json", false, "print JSON")
	return heeding(cmd, "max-roots", "mounts")
}

// rootReport is what there is to say of one root.
type rootReport struct {
	Index   int    `json:"index"`
	Path    string `json:"path"`
	Real    string `json:"realPath,omitempty"`
	URI     string `json:"uri,omitempty"`
	Verdict string `json:"verdict"`
}

// errRefused is the exit of roots for a set that no session would get; the report has said why.
var errRefused = errors.New("a session on these folders would be refused")

func checkRoots(ctx context.Context, s streams, f serveFlags, r runFlags) error {
	roots, err := r.roots()
	if err != nil {
		return err
	}
	reports := make([]rootReport, roots.Len())
	for i, dir := range roots.All() {
		reports[i] = rootReport{Index: i, Path: dir.String(), Verdict: "ok"}
	}
	w, refused := workspace.Open(ctx, roots, f.workspace())
	if refused == nil {
		defer w.Close()
		for i, root := range w.Opened() {
			reports[i].Real, reports[i].URI = root.Real.String(), root.Real.URI()
		}
	}
	var wrong workspace.RootErrors
	if refused != nil && !errors.As(refused, &wrong) {
		return refused
	}
	for _, e := range wrong {
		for at, dir := range roots.All() {
			if e.Root < 0 || e.Path == dir.String() {
				reports[at].Verdict = flaggedRoot(e, "cwd", "dir")
			}
		}
	}
	if err := printRoots(s, r, reports); err != nil {
		return err
	}
	if refused != nil {
		return errRefused
	}
	return nil
}

func printRoots(s streams, r runFlags, reports []rootReport) error {
	if r.json {
		return json.NewEncoder(s.out).Encode(reports)
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "#\tPATH\tREAL PATH\tURI\tVERDICT")
	for _, p := range reports {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", p.Index, printable(p.Path), dash(printable(p.Real)), dash(p.URI), p.Verdict)
	}
	return table.Flush()
}

// dash stands for nothing in a table.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
