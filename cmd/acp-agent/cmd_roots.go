package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

// newRoots returns the command that checks a set of folders.
func newRoots(s streams, set *settings) *cobra.Command {
	var r rootFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "roots [--cwd DIR] [--dir DIR]...",
		Short: "Check a set of folders and explain the result",
		Long: `roots shows the folders that a session would have, in order: for each folder its
path as given, its real path and file URI, which flag or setting names it, and
what is wrong with it. Without --dir it shows the folders of a session whose
editor names none: those of ACP_AGENT_DIRS, of the configuration file, and
those that you added to all sessions in the directory with /roots add. The exit
status is 1 if such a session would be rejected.`,
		Example: "  acp-agent roots --cwd app --dir ../shared --dir ../skills",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reports, err := checkRoots(cmd.Context(), set, r)
			if reports == nil {
				return err
			}
			return cmp.Or(printRoots(s, reports, asJSON), err)
		},
	}
	r.define(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	set.accept(cmd, "mounts", "state-dir")
	return cmd
}

// rootFlags are the flags that name root folders.
type rootFlags struct {
	cwd  string
	dirs []string
}

// define adds the flags to cmd.
func (r *rootFlags) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.cwd, "cwd", ".", "use `DIR` as the session's working directory")
	cmd.Flags().Var((*listValue)(&r.dirs), "dir",
		"add the folder `DIR`; can be repeated")
}

// roots returns the root set, with absolute paths.
func (r rootFlags) roots() (workspace.Roots, error) {
	paths, err := usage.AbsolutePaths(append([]string{r.cwd}, r.dirs...)...)
	if err != nil {
		return workspace.Roots{}, err
	}
	roots, err := workspace.NewRoots(paths[0], paths[1:])
	return roots, usage.WithFlagNames(err, "cwd", "dir")
}

// rootReport describes a root.
type rootReport struct {
	Index   int    `json:"index"`
	Path    string `json:"path"`
	From    string `json:"from"` // the flag or setting that names it
	Real    string `json:"realPath,omitempty"`
	URI     string `json:"uri,omitempty"`
	Verdict string `json:"verdict"`
}

// errRejected is returned for a root set with problems, after the report has explained them.
var errRejected = errors.New("a session on these folders would be rejected")

// checkRoots reports on each root. The error is errRejected if a session would be rejected; other
// errors come without reports.
func checkRoots(ctx context.Context, set *settings, r rootFlags) ([]rootReport, error) {
	roots, settings, err := set.sessionRoots(r)
	if err != nil {
		return nil, err
	}
	reports := make([]rootReport, roots.Len())
	for i, dir := range roots.All() {
		reports[i] = rootReport{Index: i, Path: dir.String(), From: "--cwd", Verdict: "ok"}
		if i > 0 {
			reports[i].From = cmp.Or(settings[dir], "--dir")
		}
	}
	options, err := set.workspace()
	if err != nil {
		return nil, err
	}
	w, err := workspace.Open(ctx, roots, options)
	if problems, ok := errors.AsType[workspace.RootErrors](err); ok {
		for _, problem := range problems {
			for i := range reports {
				if problem.Root < 0 || problem.Path == reports[i].Path {
					reports[i].Verdict = usage.DescribeRootError(problem, "--cwd", reports[i].From)
				}
			}
		}
		return reports, errRejected
	}
	if err != nil {
		return nil, err
	}
	defer w.Close()
	for i, root := range w.Opened() {
		reports[i].Real, reports[i].URI = root.Real.String(), root.Real.URI()
	}
	return reports, nil
}

// sessionRoots returns the root set that the flags name. Without --dir it is that of a session
// whose editor names no folders, and settings has the setting that declares each root after cwd.
func (set *settings) sessionRoots(r rootFlags) (
	roots workspace.Roots, settings map[workspace.Dir]string, err error,
) {
	if roots, err = r.roots(); err != nil || len(r.dirs) > 0 {
		return roots, nil, err
	}
	return set.declaredRoots(roots.Cwd())
}

// declaredRoots returns the root set of a session in cwd whose editor names no folders, and the
// setting that declares each root after cwd.
func (set *settings) declaredRoots(
	cwd workspace.Dir,
) (workspace.Roots, map[workspace.Dir]string, error) {
	dir, err := set.stateDirectory()
	if err != nil {
		return workspace.Roots{}, nil, err
	}
	o := acp.Options{Folders: set.folders, ConsentDir: consentDir(dir)}
	folders, err := o.DeclaredFolders(cwd, "")
	if err != nil {
		return workspace.Roots{}, nil, err
	}
	var paths []string
	settings := make(map[workspace.Dir]string)
	for _, f := range folders {
		dir, err := workspace.ParseDir(f.Path)
		if roots, ok := errors.AsType[workspace.RootErrors](err); ok {
			return workspace.Roots{}, nil,
				errors.New(usage.DescribeRootError(roots[0], f.Setting, f.Setting))
		}
		settings[dir] = cmp.Or(settings[dir], f.Setting)
		paths = append(paths, f.Path)
	}
	roots, err := workspace.NewRoots(cwd.String(), paths)
	return roots, settings, err
}

func printRoots(s streams, reports []rootReport, asJSON bool) error {
	if asJSON {
		return writeJSON(s.out, reports)
	}
	table := terminal.NewTable(s.out, "#", "PATH", "REAL PATH", "URI", "FROM", "VERDICT")
	for _, p := range reports {
		table.Row(p.Index, text.Printable(p.Path),
			cmp.Or(text.Printable(p.Real), "-"), cmp.Or(p.URI, "-"), text.Printable(p.From),
			p.Verdict)
	}
	return table.Flush()
}

// settingOf returns the setting that declares the root of an error.
func settingOf(e workspace.RootError, settings map[workspace.Dir]string) string {
	for dir, setting := range settings {
		if dir.String() == e.Path {
			return setting
		}
	}
	return "--dir"
}
