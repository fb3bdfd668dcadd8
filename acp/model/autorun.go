package model

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// whyAsk says why programs execute what a write or a new directory makes, or take orders from it,
// without being asked to: git, agents, and editors with their language servers. It returns "" for
// other changes, which the user can accept beforehand. What only runs if a command says so, such as
// a Makefile, is not meant: commands ask.
func whyAsk(ws *workspace.Workspace, catalog *discovery.Catalog, c tools.Change) string {
	// The root's own path counts, as the user spells it and as it is.
	spelled, real := namesOf(c.Ref.Path()), namesOf(c.Ref.Real())
	either := func(is func(names []string) bool) bool { return is(spelled) || is(real) }
	switch name := spelled[len(spelled)-1]; {
	case either(isHidden):
		return "it is hidden or in a hidden folder, and programs run what they find there"
	case inRepository(ws, c.Ref):
		return "git takes a folder with these files for a repository, and runs what its " +
			"configuration names"
	case either(isForAgents):
		return "agents follow or start what files of this name contain"
	case isImported(catalog, c.Ref):
		return "instructions of the folder include it"
	case c.Kind != tools.Write:
		return ""
	case either(isRunByEditors):
		return "editors and their language servers run " + name + " by themselves"
	case isScript(c.New) || c.Old != nil && isScript(*c.Old) || isExecutable(ws, c.Ref):
		return "it is a program"
	}
	return ""
}

// namesOf returns the names in a path in lower case, since many file systems ignore the case.
func namesOf(p string) []string {
	isSlash := func(r rune) bool { return r == '/' || r == '\\' }
	return strings.FieldsFunc(strings.ToLower(p), isSlash)
}

// isHidden reports whether a file is hidden, or in a hidden directory or a git repository by name.
func isHidden(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".git")
	})
}

// inRepository reports whether a directory on the way to ref in its root looks like a git
// repository, or would with ref. The check is stricter than git's own, so that no order in which
// the parts are made goes unnoticed.
func inRepository(ws *workspace.Workspace, ref workspace.Ref) bool {
	names := strings.Split(ref.Rel(), "/")
	dir := ref.Root().Dir.String()
	for _, next := range names {
		has := func(name string) bool {
			if strings.EqualFold(name, next) {
				return true
			}
			_, err := ws.Lstat(dir + "/" + name)
			return err == nil
		}
		if has("HEAD") && (has("objects") || has("refs") || has("commondir")) {
			return true
		}
		dir += "/" + next
	}
	return false
}

// agentPatterns are the names in the patterns of discovery's table, in lower case.
var agentPatterns = sync.OnceValue(func() [][]string {
	var all [][]string
	for _, c := range discovery.Conventions() {
		all = append(all, strings.Split(strings.ToLower(c.Pattern), "/"))
	}
	return all
})

// isForAgents reports whether a file has a name by which agents find instructions, skills,
// commands, MCP servers or plugins, in any directory: each may be the root of another session.
func isForAgents(names []string) bool {
	for _, pattern := range agentPatterns() {
		for from := range names {
			if matches(pattern, names[from:]) {
				return true
			}
		}
	}
	return false
}

// isImported reports whether the catalog has a file under another name, such as one that a
// CLAUDE.md imports or that a link leads to.
func isImported(catalog *discovery.Catalog, ref workspace.Ref) bool {
	return slices.ContainsFunc(catalog.Artifacts(), func(a discovery.Artifact) bool {
		return a.Ref == ref || slices.ContainsFunc(a.Imports, func(i discovery.Import) bool {
			return i.Ref == ref
		})
	})
}

// matches reports whether names match a pattern of discovery.
func matches(pattern, names []string) bool {
	if len(pattern) == 0 {
		return len(names) == 0
	}
	if pattern[0] == "**" {
		for from := range names {
			if matches(pattern[1:], names[from:]) {
				return true
			}
		}
		return false
	}
	if len(names) == 0 {
		return false
	}
	ok, _ := path.Match(pattern[0], names[0])
	return ok && matches(pattern[1:], names[1:])
}

// editorFiles match the names, in lower case, of files that are not hidden and that common editors
// and language servers execute when a folder is opened or a file is saved. Most programs that use
// JavaScript are configured by a NAME.config.js.
var editorFiles = []string{
	"*.code-workspace",                     // tasks of Visual Studio Code
	"*.config.[jt]s", "*.config.[cm][jt]s", // ESLint, Prettier, Tailwind …
	"build.rs", "cargo.toml", // rust-analyzer
	"*.gradle", "*.gradle.kts", "build.sbt", // Java and Scala
	"cmakelists.txt", "*.cmake", "package.swift", "mix.exs", // C++, Swift, Elixir
	"gemfile", "*.gemspec", "pom.xml", // Ruby, Maven
	"conftest.py", "sitecustomize.py", "*.pth", // Python
	"usercustomize.py",
	"*.csproj", "*.fsproj", "*.vbproj", "*.props", "*.targets", // MSBuild
}

func isRunByEditors(names []string) bool {
	name := names[len(names)-1]
	return slices.ContainsFunc(editorFiles, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// isScript reports whether a text begins as a script does. An attribute of Rust, #![…], is none.
func isScript(s string) bool {
	interpreter, ok := strings.CutPrefix(s, "#!")
	return ok && !strings.HasPrefix(interpreter, "[")
}

// isExecutable reports whether the file at ref may be executed.
func isExecutable(ws *workspace.Workspace, ref workspace.Ref) bool {
	info, err := ws.Stat(ref.Path())
	return err == nil && info.Mode().Perm()&0o111 != 0
}
