package permission

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

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
func WhyAsk(ctx context.Context, ws *workspace.Workspace, catalog *discovery.Catalog,
	c tools.Change) string {
	// The path of the root itself counts too, as the user spells it and as its real path.
	spelled, real := namesOf(c.Ref.Path()), namesOf(c.Ref.Real())
	whole := namesIn(c.Ref.Path(), spelling) // on most file systems a colon does not begin a stream
	either := func(is func(names []string) bool) bool {
		return is(spelled) || is(real) || is(whole)
	}
	isRepository, isEnvironment := surroundings(ws, c.Ref)
	switch name := spelled[len(spelled)-1]; {
	case c.Loses != 0:
		return "the file " + c.Loses.String()
	case c.Alike != "":
		return "its name looks the same as that of " + text.Printable(c.Alike)
	case either(isHidden):
		return "it is hidden or in a hidden folder, and programs run what they find there"
	case isRepository:
		return "git treats a folder with these files as a repository, and runs what its " +
			"configuration names"
	case isEnvironment || either(isInstalled) || isOfSystem(spelled) || isOfSystem(real):
		return "programs and editors load what is installed there"
	case either(isForAgents):
		return "agents follow instructions or start programs in files of this name"
	case either(isShortened):
		return "on some disks its name is the short form of another, which may be a file that programs run"
	case isImported(ctx, ws, catalog, c.Ref):
		return "instructions of the folder include it"
	case c.Kind != tools.Write:
		return ""
	case either(isRunByEditors):
		return "editors, shells, git hooks or CI run " + text.Printable(name) +
			", or what it names, automatically"
	case isScript(c.New) || c.Old != nil && isScript(*c.Old) || isExecutable(ws, c.Ref):
		return "it is a program"
	}
	return ""
}

// namesOf returns the names in a path, folded by [fold].
func namesOf(p string) []string { return namesIn(p, fold) }

func namesIn(p string, fold func(string) string) []string {
	names := strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' })
	for i, name := range names {
		names[i] = fold(name)
	}
	return names
}

// fold returns the same text for all spellings that some file system treats as the same name. It
// ignores what [spelling] ignores, and a stream after a colon.
func fold(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return spelling(name)
}

// spelling returns a name without upper and lower case, how characters are composed, invisible
// characters, and dots and spaces at the end.
func spelling(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		name = strings.ToLower(name)
	} else {
		name = strings.Map(func(r rune) rune {
			if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
				unicode.Variation_Selector) {
				return -1
			}
			return r
		}, name)
		lower := func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }
		name = strings.ReplaceAll(strings.Map(lower, norm.NFKD.String(name)), "ß", "ss")
		name = norm.NFKD.String(name)
	}
	return cmp.Or(strings.TrimRight(name, ". "), name)
}

// isHidden reports whether, by its path, a file is hidden, in a hidden directory, or in a git
// repository.
func isHidden(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".git")
	})
}

// isInstalled reports whether, by its path, a file is in a directory of installed packages, a
// Python environment, Gradle's own build or macOS's services.
func isInstalled(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return slices.Contains([]string{"node_modules", "site-packages", "dist-packages",
			"__pypackages__", "__pycache__", "venv", "virtualenv", "buildsrc", "launchagents",
			"launchdaemons"}, name)
	})
}

// isOfSystem reports whether an absolute path is in a directory where Unix keeps programs or their
// configuration.
func isOfSystem(names []string) bool {
	if names[0] == "usr" {
		return !slices.Contains(names, "src")
	}
	return slices.Contains([]string{"bin", "boot", "etc", "lib", "lib64", "sbin"}, names[0])
}

// isShortened reports whether a name may be the short form that Windows has for another, such as
// GIT~1 for .git.
func isShortened(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		before, after, _ := strings.Cut(name, "~")
		return len(before) <= 6 && after != "" && '1' <= after[0] && after[0] <= '9'
	})
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

// agentPatterns are the names in the patterns of discovery's table and in obeyedPatterns, in lower
// case.
var agentPatterns = sync.OnceValue(func() [][]string {
	var all [][]string
	for _, c := range discovery.Conventions() {
		all = append(all, strings.Split(strings.ToLower(c.Pattern), "/"))
	}
	for _, p := range obeyedPatterns {
		all = append(all, strings.Split(p, "/"))
	}
	return all
})

// obeyedPatterns are, in lower case, subagents, hooks and programs of agents, which discovery does
// not look for.
var obeyedPatterns = []string{
	"agents/**/*.md", ".kilo/agent/**/*.md", ".opencode/agent/**/*.md", ".*/agents/*.json",
	".*/agents/*.toml", ".*/agents/*.yaml", ".amazonq/cli-agents/*.json", ".factory/droids/*.md",
	".augment/settings.json", ".claude/settings.json", ".claude/settings.local.json",
	".codebuddy/settings.json", ".factory/settings.json", ".gemini/settings.json",
	".iflow/settings.json", ".qwen/settings.json",
	"hooks/hooks.json", ".*/hooks.json", ".*/hooks.toml", ".*/hooks/*.json", ".kiro/hooks/*.kiro.hook",
	".omp/hooks/*.ts",
	".cline/plugins/*.[jt]s", ".opencode/plugin/*.[jt]s", ".opencode/plugins/*.[jt]s",
	".pi/extensions/*.ts",
}

// agentFiles match the names of files, in lower case, that only agents without a row in discovery's
// table read.
var agentFiles = []string{
	"*.agent.md", "*.chatmode.md", "*.instructions.md", "*.prompt.md", // GitHub Copilot
}

// isForAgents reports whether a file has a name by which agents find instructions, skills,
// commands, MCP servers or plugins, in any directory: each may be the root of another session.
func isForAgents(names []string) bool {
	if matchesAny(agentFiles, names[len(names)-1]) {
		return true
	}
	for _, pattern := range agentPatterns() {
		for from := range names {
			if matches(pattern, names[from:]) {
				return true
			}
		}
	}
	return false
}

// isImported reports whether the catalog, or an instruction of a directory, uses the file under
// another name: because a CLAUDE.md imports it, even if it does not exist yet, or because a link
// leads to it.
func isImported(ctx context.Context, ws *workspace.Workspace, catalog *discovery.Catalog,
	ref workspace.Ref) bool {
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

// editorFiles match the names, in lower case, of visible files that programs execute, or that name
// what programs execute: common editors and language servers when a folder is opened or a file is
// saved, shells when a folder is entered, git on a commit, and CI after a push. Most JavaScript
// tools are configured by a NAME.config.js.
var editorFiles = []string{
	"*.code-workspace", "*.sublime-project", // tasks and language servers of editors
	"*.config.*", "gruntfile.*", "gulpfile.*", "jakefile*", // ESLint, Prettier, Tailwind …
	"package.json", "tsconfig*.json", "jsconfig*.json", "deno.json", "deno.jsonc", "nx.json",
	"build.rs", "cargo.lock", "cargo.toml", "rust-analyzer.toml", "rust-project.json",
	"rust-toolchain", "rust-toolchain.toml",
	"*.gradle", "*.gradle.kts", "*.versions.toml", "gradle*.properties", "pom.xml", // Java
	"*.mill", "*.sbt", "build.properties", "build.sc", // Scala
	"*.bzl", "build", "build.bazel", "module.bazel", "workspace", "workspace.bazel",
	"*.cmake", "cmakelists.txt", "cmakepresets.json", "cmakeuserpresets.json", // C and C++
	"*.mk", "gnumakefile", "makefile", "meson.build", "meson.options", "meson_options.txt",
	"package.swift", "mix.exs", "rebar.config*", // Swift, Elixir, Erlang
	"*.cabal", "cabal.project*", "dune", "dune-project", "hie.yaml", "stack.yaml", // Haskell, OCaml
	"*.gemspec", "gemfile*", "gems.*", "phpstan*.neon*", "psalm.xml*", // Ruby, PHP
	"*.pth", "conftest.py", "sitecustomize.py", "usercustomize.py", // Python
	"mypy.ini", "pixi.toml", "pylintrc*", "pyproject.toml", "pytest.ini", "pytest.toml", "setup.cfg",
	"tox.ini",
	"*.*proj", "*.props", "*.rsp", "*.targets", "global.json", "nuget.config", // MSBuild
	"*.nix", "devbox.json", "devenv.yaml", "flake.lock", "mise.*.toml", "mise.toml", // direnv, mise
	"*profile.ps1", "ansible.cfg",
	"captainhook.json", "grumphp.*", "hk.pkl", "lefthook*", "prek.toml", "simple-git-hooks.*", // git
	"*.gitlab-ci.yml", "appveyor.yml", "azure-pipelines*", "bitbucket-pipelines.yml", // CI
	"buildspec.y*ml", "cloudbuild.y*ml", "jenkinsfile*",
}

func isRunByEditors(names []string) bool { return matchesAny(editorFiles, names[len(names)-1]) }

// matchesAny reports whether a name matches one of some patterns.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
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
