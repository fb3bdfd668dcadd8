package model

import (
	"context"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/consent"
	"github.com/acp-agent/acp-agent/internal/text"
)

// ruledPrograms are the programs whose commands can be allowed by their first words: they build,
// test and examine, and their first argument says what they do. Programs that run what their
// arguments say, such as shells and interpreters, are not among them.
var ruledPrograms = []string{
	"bazel", "bundle", "cargo", "composer", "dotnet", "git", "go", "golangci-lint", "gradle", "just",
	"make", "mix", "mvn", "npm", "pnpm", "rake", "ruff", "sbt", "stack", "swift", "task", "yarn", "zig",
}

// unruledVerbs run other programs, or change what later commands do.
var unruledVerbs = []string{
	"add", "alias", "apply", "archive", "bisect", "clean", "clone", "config", "difftool", "dlx", "env",
	"exec", "fetch", "filter-branch", "format-patch", "generate", "get", "install", "ls-remote",
	"mergetool", "publish", "pull", "push", "rebase", "run", "run-script", "script", "shell",
	"submodule", "tool", "x",
}

// plainWords are words that a shell passes on unchanged: without quotes, variables, patterns, other
// commands, redirections and assignments before the program.
const (
	plainWords = `^[a-z][a-z0-9-]*( +[A-Za-z0-9_./:,@+=-]+)*$`
	plainVerb  = `^[a-z][a-z0-9:-]*$`
	// unruledOption matches options that name a program to run, such as -exec, --vettool, -c and git
	// grep -O, a file to write, or another directory.
	unruledOption = `^-(-?[a-z-]*(exec|tool|cmd|pack|output|config|file|dir|prefix|path)|[OC]|[ocfx](=|$))`
)

// commandPrefix returns the first words of this command and all similar ones: a program and what it
// does, such as "go test". It returns nil if such commands cannot be allowed together.
func commandPrefix(line string) []string {
	if runtime.GOOS == "windows" || !regexp.MustCompile(plainWords).MatchString(line) {
		return nil
	}
	words := strings.Fields(line)
	if len(words) < 2 || !slices.Contains(ruledPrograms, words[0]) ||
		!regexp.MustCompile(plainVerb).MatchString(words[1]) || slices.Contains(unruledVerbs, words[1]) {
		return nil
	}
	if slices.ContainsFunc(words[2:], regexp.MustCompile(unruledOption).MatchString) {
		return nil
	}
	return words[:2]
}

// ruleFor returns the consent that allows a command, and all commands with the same first words, in
// its root. ok is false if there can be no such consent.
func (c *call) ruleFor(cmd shellCommand) (rule consent.Consent, ok bool) {
	prefix := commandPrefix(cmd.line)
	info, err := c.turn.host.Workspace().Stat(cmd.dir)
	if prefix == nil || err != nil || !c.turn.backend.consents.Remembers() {
		return consent.Consent{}, false
	}
	return consent.ForCommands(info.Ref().Root().Real, prefix), true
}

// isRuled reports whether the user has allowed commands that begin like this one, whatever words
// follow.
func (c *call) isRuled(cmd shellCommand) (bool, error) {
	rule, ok := c.ruleFor(cmd)
	if !ok {
		return false, nil
	}
	return c.turn.backend.consents.Has(rule.ID)
}

// askRule asks whether to always allow commands like this one, in addition to this command itself.
func (c *call) askRule(ctx context.Context, shown backend.ToolCall, rule consent.Consent) error {
	label := "Always allow " + text.Code(strings.Join(rule.Prefix, " ")+" …") + " in this folder"
	always, err := c.askUser(ctx, shown, label)
	if err == nil && always {
		err = c.turn.backend.consents.Allow(rule)
	}
	return err
}
