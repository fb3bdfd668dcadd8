package commandline

import (
	"errors"
	"os"
	"slices"
	"strings"
)

// usage says how a program may be called by a rule. A word that it does not list is not understood.
// In all of its lists, items are separated by spaces.
type usage struct {
	// words are the words that a rule remembers: a program and what it does, such as "go test".
	// "a|b" means either, TASK the name of a task that a file of the folder defines.
	words string
	// letters are the options of one letter and without a value. They can be joined, as in "-la".
	letters string
	// options are the others, written out. Programs accept abbreviations; a rule does not.
	//
	//	--name         no value
	//	--name=KIND    with a value
	//	--name[=KIND]  with or without
	//	-name:KIND     with a value after "=" or in the next word; for one letter, in the next word
	//	               or without a space
	//	-NUM           a number
	options string
	// passed are the options after "--", which the program passes on.
	passed string
	// operands are the kinds of the other words, in order. Any of them may be missing; KIND... is for
	// all that follow.
	operands string
	// prepare, if not nil, completes the command after its words are read. It returns an error if
	// there is no environment in which it surely runs nothing else.
	prepare func(r *reader, c *Command) error
}

// The kinds of words:
//
//	PATH   a path in the roots, whether it exists or not, or a word that could be one
//	FILE   an existing file in the roots
//	TEXT   any text that the program never takes for a path
//	FORMAT a format of git without signatures, for which git runs a program
//	PKG    a path in the roots, or a package of Go without a version, which go would fetch
//	WORD   letters, digits and ".,:+_-"
//	NUM    a number
//	SIGNED a number with a sign and a unit
//	LINES  line numbers for sed, such as 1,20p
//	LABEL  a target of Bazel
//	TASK   the name of a task

// diffOptions are options of git commands that print differences. None of them names a program
// or a file. Drivers for other formats come from the configuration, which [repository] checks.
const diffOptions = "--stat --shortstat --numstat --name-only --name-status --patch --no-patch " +
	"--cached --staged --unified=NUM -U:NUM --word-diff --ignore-all-space --ignore-space-change " +
	"--no-color --no-ext-diff --no-textconv --no-renames --summary --check "

// patchOptions are those of diffOptions with which git log prints what changed.
const patchOptions = "--patch --unified -U --word-diff --check"

const logOptions = diffOptions + "--oneline --graph --decorate --no-decorate --all --branches --tags " +
	"--follow --merges --no-merges --first-parent --reverse --abbrev-commit " +
	"--max-count=NUM -n:NUM -NUM --skip=NUM --author=TEXT --grep=TEXT --since=TEXT --until=TEXT " +
	"--after=TEXT --before=TEXT --date=WORD -S:TEXT -G:TEXT --format=FORMAT --pretty=FORMAT "

const cargoOptions = "--release --all --workspace --all-features --no-default-features --all-targets " +
	"--lib --bins --tests --examples --benches --doc --no-run --no-fail-fast --offline --locked " +
	"--frozen --quiet --verbose --features:WORD -p:WORD --package:WORD --bin:WORD --test:WORD " +
	"--example:WORD -j:NUM --jobs:NUM --message-format=WORD --no-deps"

const goOptions = "-v -x -n -race -trimpath -tags:WORD -p:NUM "

// programs is the table. It has programs that look at files, and programs that build and test what
// is in the folder. Those run what the folder says; a rule covers that.
//
// What is not here has no rule: shells, interpreters, programs that start others (env, xargs,
// timeout, npx), and whatever installs, sends, deletes or changes files that git, editors or later
// commands obey.
var programs = []usage{
	// Look at files.
	{words: "cat", letters: "nbsAET", operands: "PATH...", prepare: printsFiles},
	{words: "diff", letters: "uqNwbBiysa", options: "-U:NUM --brief", operands: "FILE FILE",
		prepare: printsFiles},
	{words: "find", operands: "PATH...", options: "-name:TEXT -iname:TEXT -path:TEXT -ipath:TEXT " +
		"-type:WORD -maxdepth:NUM -mindepth:NUM -size:SIGNED -mtime:SIGNED -mmin:SIGNED -empty -not -o -a " +
		"-prune -print -print0 -newer:PATH"},
	{words: "grep", letters: "rniclwvEFoHhsxqaI", operands: "TEXT PATH...", prepare: printsFiles,
		options: "-A:NUM -B:NUM -C:NUM -m:NUM --include=TEXT --exclude=TEXT --exclude-dir=TEXT " +
			"--recursive --ignore-case --line-number --count --fixed-strings --word-regexp --color=WORD"},
	{words: "head|tail", letters: "qv", operands: "PATH...", prepare: printsFiles,
		options: "-n:SIGNED -c:SIGNED -NUM --lines=SIGNED --bytes=SIGNED"},
	{words: "ls", letters: "lahARtrS1dFpns", options: "--all --recursive --color=WORD",
		operands: "PATH..."},
	{words: "pwd"},
	{words: "rg --files", operands: "PATH...", prepare: withoutConfig,
		options: "-g:TEXT --glob:TEXT -t:WORD --type:WORD --hidden --no-ignore --sort=WORD"},
	{words: "rg", letters: "inNlcwvFSsoxuHIp0", operands: "TEXT PATH...", prepare: withoutConfig,
		options: "-A:NUM -B:NUM -C:NUM -m:NUM -t:WORD -T:WORD -g:TEXT --glob:TEXT --type:WORD " +
			"--max-count=NUM --max-depth=NUM --ignore-case --smart-case --case-sensitive --line-number " +
			"--no-line-number --files-with-matches --count --word-regexp --fixed-strings --hidden " +
			"--no-ignore --no-heading --heading --multiline --only-matching --json --stats --sort=WORD " +
			"--color=WORD"},
	{words: "sed", letters: "nEs", operands: "LINES PATH...", prepare: printsFiles},
	{words: "sort", letters: "bdfgiMhnRrVuczs", options: "-k:WORD -t:WORD --reverse --unique " +
		"--numeric-sort", operands: "PATH...", prepare: printsFiles},
	{words: "wc", letters: "clmwL", operands: "PATH...", prepare: printsFiles},

	// Look at a repository.
	{words: "git status", letters: "sbvz", operands: "PATH...", prepare: repository,
		options: "--short --branch --porcelain[=WORD] --long --show-stash --ignored " +
			"--untracked-files[=WORD] -uno -uall -unormal"},
	{words: "git diff", letters: "pswbzRa", options: diffOptions + "--diff-filter=WORD --merge-base",
		operands: "PATH...", prepare: repository},
	{words: "git log|show", letters: "pswbm", options: logOptions, operands: "PATH...",
		prepare: repository},
	{words: "git blame", letters: "wselbtfn", options: "--porcelain -L:WORD --date=WORD",
		operands: "PATH...", prepare: repository},
	{words: "git grep", letters: "niIlLcwvEFGohp", operands: "TEXT PATH...", prepare: repository,
		options: "--cached --untracked --line-number --count --ignore-case " +
			"--word-regexp --fixed-strings --files-with-matches --name-only --break --heading " +
			"-A:NUM -B:NUM -C:NUM --max-depth=NUM --no-color"},
	{words: "git branch", letters: "arv", options: "--list --all --show-current --no-color -vv",
		prepare: repository},
	{words: "git tag", letters: "ln", options: "--list", prepare: repository},
	{words: "git remote", letters: "v", prepare: repository},
	{words: "git reflog", options: logOptions, prepare: repository},
	{words: "git stash list", options: logOptions, prepare: repository},
	{words: "git ls-files", letters: "cdmoistkuvz", operands: "PATH...", prepare: repository,
		options: "--cached --deleted --modified --others --stage --unmerged --exclude-standard " +
			"--full-name --error-unmatch"},
	{words: "git rev-parse", operands: "PATH...", prepare: repository,
		options: "--abbrev-ref --short[=NUM] --verify --quiet --show-toplevel --show-prefix " +
			"--is-inside-work-tree --symbolic-full-name"},
	{words: "git merge-base|describe", options: "--all --tags --always --dirty --long --abbrev=NUM " +
		"--is-ancestor --fork-point", operands: "PATH...", prepare: repository},

	// Build and test what is in the folder.
	{words: "bazel build|test", operands: "LABEL...", options: "-c:WORD --config=WORD --keep_going " +
		"--test_output=WORD --jobs=NUM --test_filter=TEXT"},
	{words: "cargo build|check|doc|bench", letters: "rqv", options: cargoOptions, operands: "PATH"},
	{words: "cargo clippy", letters: "rqv", options: cargoOptions,
		passed: "-A:WORD -D:WORD -W:WORD"},
	{words: "cargo fmt", options: "--check", passed: "--check"},
	{words: "cargo test", letters: "rqv", options: cargoOptions, operands: "PATH",
		passed: "--exact --ignored --include-ignored --nocapture --show-output --skip:WORD " +
			"--test-threads=NUM"},
	{words: "cargo tree|metadata", options: "--workspace --offline --locked --no-deps --depth:NUM " +
		"--format-version:NUM"},
	{words: "dotnet build|test", operands: "PATH...", options: "-c:WORD --configuration:WORD " +
		"--no-build --no-restore --nologo --filter:TEXT -v:WORD --verbosity:WORD"},
	{words: "go build|vet|list", options: goOptions + "-json -m -deps -test", operands: "PKG..."},
	{words: "go test", operands: "PKG...", options: goOptions +
		"-run:TEXT -skip:TEXT -bench:TEXT -list:TEXT -count:NUM -cpu:NUM -parallel:NUM -timeout:WORD " +
		"-benchtime:WORD -shuffle:WORD -vet:WORD -covermode:WORD -short -failfast -cover -benchmem -json"},
	{words: "go version"},
	{words: "golangci-lint run", options: "-v --verbose --new --timeout:WORD", operands: "PATH...",
		prepare: printsFiles},
	{words: "gradle TASK", letters: "qid", options: "--info --quiet --stacktrace --offline " +
		"--continue --rerun-tasks --no-daemon --parallel"},
	{words: "just TASK", options: "--quiet --dry-run"},
	{words: "make TASK", letters: "knsBiw", options: "-j:NUM -j --jobs=NUM --silent --keep-going " +
		"--always-make --dry-run"},
	{words: "mix compile|test", options: "--force --warnings-as-errors --trace --stale --failed " +
		"--cover --seed:NUM", operands: "PATH..."},
	{words: "mvn compile|test|verify|package", letters: "qoBXe", options: "--quiet --offline " +
		"--batch-mode --fail-at-end"},
	{words: "npm|pnpm|yarn test", options: "--silent -s"},
	{words: "npm|pnpm|yarn run TASK", options: "--silent -s"},
	{words: "pytest", letters: "qvxsl", operands: "PATH...", options: "-vv -k:TEXT -m:TEXT " +
		"--lf --ff --exitfirst --quiet --verbose --last-failed --tb=WORD --maxfail=NUM --durations=NUM " +
		"--collect-only"},
	{words: "rake TASK", options: "--quiet --trace"},
	{words: "ruff check", operands: "PATH...", prepare: printsFiles, options: "--quiet --diff " +
		"--no-fix --statistics --select=WORD --ignore=WORD --output-format=WORD"},
	{words: "sbt compile|test"},
	{words: "stack build|test", options: "--fast --pedantic"},
	{words: "swift build|test", options: "-c:WORD --configuration:WORD --parallel --filter:TEXT -v"},
	{words: "task TASK", letters: "vsf", options: "--verbose --silent --force --dry"},
	{words: "zig build", options: "--summary:WORD"},
}

// withoutConfig gives rg an environment in which it does not read the user's configuration, which
// may let it follow links.
func withoutConfig(r *reader, c *Command) error {
	const variable = "RIPGREP_CONFIG_PATH"
	if os.Getenv(variable) != "" {
		c.Bare = errors.New(variable + " is set")
	}
	c.Env = []string{variable + "="}
	if c.Rule[len(c.Rule)-1] == "--files" {
		return nil // which prints names only
	}
	return printsFiles(r, c)
}

// match returns how many words of a command the usage's own words cover, or 0.
func (u usage) match(words []string) int {
	items := strings.Fields(u.words)
	if len(words) < len(items) {
		return 0
	}
	for i, item := range items {
		if item == "TASK" {
			if !isKind(item, words[i]) {
				return 0
			}
			continue
		}
		if !slices.Contains(strings.Split(item, "|"), words[i]) {
			return 0
		}
	}
	return len(items)
}
