package permission

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// WhyAsk returns a reason to ask the user about a change, even if edits are accepted in advance:
// some program may execute the written file or new directory, or obey it, without being told to.
// Such programs are git, agents, shells, CI, and editors with their language servers. For other
// changes it returns "". Files that only a command runs, such as a justfile, do not count, because
// commands are asked about.
func WhyAsk(
	ctx context.Context, ws *workspace.Workspace, catalog *discovery.Catalog, c tools.Change,
) string {
	// The path of the root itself counts too, as the user spells it and as its real path.
	spelled, real := namesOf(c.Ref.Path()), namesOf(c.Ref.Real())
	whole := namesIn(c.Ref.Path(), spelling) // on most file systems a colon does not begin a stream
	why := whyByName(c.Kind == tools.Write, spelled, real, whole)
	isRepository, isEnvironment := surroundings(ws, c.Ref)
	switch {
	case c.Loses != 0:
		return "the file " + c.Loses.String()
	case c.Alike != "":
		return "its name looks the same as that of " + text.Printable(c.Alike)
	case why != "":
		return strings.ReplaceAll(why, "NAME", text.Printable(spelled[len(spelled)-1]))
	case isRepository:
		return "git treats a folder with these files as a repository, and runs what its " +
			"configuration names"
	case isEnvironment || isOfSystem(spelled) || isOfSystem(real):
		return "programs and editors load what is installed there"
	case catalog == nil, isImported(ctx, ws, catalog, c.Ref): // without one, it may be
		return "instructions of the folder include it"
	case c.Kind == tools.Write &&
		(isScript(c.New) || c.Old != nil && isScript(*c.Old) || isExecutable(ws, c.Ref)):
		return isProgram
	}
	return ""
}

const isProgram = "it is a program"

// risk is a reason to ask, and the patterns of paths that have it.
type risk struct {
	why      string
	patterns []string
}

//go:embed autorun.txt
var autorun string

// risks returns the table in autorun.txt.
var risks = sync.OnceValue(func() (all []risk) {
	for line := range strings.Lines(autorun) {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || trimmed[0] == '#':
		case line[0] != '\t':
			all = append(all, risk{why: trimmed})
		default:
			last := &all[len(all)-1]
			if trimmed == "DISCOVERY" {
				trimmed = strings.ToLower(strings.Join(discovery.Patterns(), " "))
			}
			for pattern := range strings.FieldsSeq(trimmed) {
				folder := strings.TrimSuffix(pattern, "/**")
				last.patterns = append(last.patterns, "**/"+pattern, "**/"+folder)
			}
		}
	}
	return all
})

// matches reports whether a path with these names has the risk.
func (r risk) matches(names []string) bool {
	path := strings.Join(names, "/")
	return slices.ContainsFunc(r.patterns, func(pattern string) bool {
		return doublestar.MatchUnvalidated(pattern, path)
	})
}

// whyByName returns the reason to ask about one of some paths, by the names in them.
func whyByName(isWrite bool, paths ...[]string) string {
	for _, r := range risks() {
		why, ifWritten := strings.CutPrefix(r.why, "if written: ")
		if (isWrite || !ifWritten) && slices.ContainsFunc(paths, r.matches) {
			return why
		}
	}
	return ""
}

// isOfSystem reports whether an absolute path is in a directory where Unix keeps programs or their
// configuration.
func isOfSystem(names []string) bool {
	if names[0] == "usr" {
		return !slices.Contains(names, "src")
	}
	return slices.Contains([]string{"bin", "boot", "etc", "lib", "lib64", "sbin"}, names[0])
}

// surroundings reports whether a directory on the way to ref in its root looks like a git
// repository or a Python environment, or would with ref. The check for a repository is stricter
// than git's own, so that a repository is noticed in whatever order its parts are created.
func surroundings(ws *workspace.Workspace, ref workspace.Ref) (isRepository, isEnvironment bool) {
	dir := ref.Root().Dir.String()
	for next := range strings.SplitSeq(ref.Rel(), "/") {
		has := func(name string) bool {
			if fold(next) == strings.ToLower(name) {
				return true
			}
			_, err := ws.Lstat(dir + "/" + name)
			return err == nil
		}
		isRepository = isRepository ||
			has("HEAD") && (has("objects") || has("refs") || has("commondir"))
		isEnvironment = isEnvironment || has("pyvenv.cfg")
		dir += "/" + next
	}
	return isRepository, isEnvironment
}

// isImported reports whether the catalog, or an instruction of a directory, uses the file under
// another name: because a CLAUDE.md imports it, even if it does not exist yet, or because a link
// leads to it.
func isImported(
	ctx context.Context, ws *workspace.Workspace, catalog *discovery.Catalog, ref workspace.Ref,
) bool {
	real := namesOf(ref.Real())
	is := func(r workspace.Ref) bool {
		return r != (workspace.Ref{}) && slices.Equal(namesOf(r.Real()), real)
	}
	above, _ := catalog.For(ctx, ref.Path()) // of many directories Nested knows some
	nested, _ := catalog.Below(ctx)
	all := slices.Concat(catalog.Artifacts(), above, nested)
	return slices.ContainsFunc(all, func(a discovery.Artifact) bool {
		return is(a.Ref) ||
			slices.ContainsFunc(a.Imports, func(i discovery.Import) bool { return is(i.Ref) }) ||
			slices.ContainsFunc(a.Unread, func(path string) bool { return is(LeadsTo(ws, path)) })
	})
}

// LeadsTo returns where a path leads, even if nothing is there yet. It returns the zero Ref if that
// cannot be determined.
func LeadsTo(ws *workspace.Workspace, path string) workspace.Ref {
	ref, err := ws.WriteTarget(path)
	if err != nil {
		ref, _, _ = ws.MissingParents(path, false)
	}
	return ref
}

// isScript reports whether a text begins with "#!" and so may be a script. It is false for an
// attribute of Rust, #![…].
func isScript(s string) bool {
	interpreter, ok := strings.CutPrefix(s, "#!")
	return ok && !strings.HasPrefix(interpreter, "[")
}

// isExecutable reports whether the file at ref may be executed.
func isExecutable(ws *workspace.Workspace, ref workspace.Ref) bool {
	info, err := ws.Stat(ref.Path())
	return err == nil && info.Mode().Perm()&0o111 != 0
}
