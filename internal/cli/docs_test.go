package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// pages returns the documents by their paths, which start at the top of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob("../../" + pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			all[strings.TrimPrefix(filepath.ToSlash(name), "../../")] = string(text)
		}
	}
	require.Contains(t, all, "docs/reference.md")
	return all
}

var (
	fenced     = regexp.MustCompile("(?ms)^ *(`{3,})[a-z]*\n(.*?)^ *(`{3,})$")
	inCode     = regexp.MustCompile("``.+?``|`[^`]+`")
	ofHeadings = regexp.MustCompile("(?m)^#+ (.*)$")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestDocsLinkToWhatExists checks the links of the documents, and that the README leads to each.
func TestDocsLinkToWhatExists(t *testing.T) {
	all := pages(t)
	anchors := map[string][]string{}
	for name, text := range all {
		for _, heading := range ofHeadings.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			anchors[name] = append(anchors[name], anchor(heading[1]))
		}
	}
	linked := []string{"README.md"}
	for name, text := range all {
		for _, link := range linkTarget.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			path, fragment, _ := strings.Cut(link[1], "#")
			if strings.Contains(path, ":") {
				continue
			}
			to := name
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			}
			_, err := os.Stat("../../" + to)
			require.NoError(t, err, "%s: %s", name, link[1])
			if fragment != "" {
				require.Contains(t, anchors[to], fragment, "%s: %s", name, link[1])
			}
			if name == "README.md" {
				linked = append(linked, to)
			}
		}
	}
	for name := range all {
		require.Contains(t, linked, name, "README.md")
	}
}

// anchor returns what a link to a heading ends with.
func anchor(heading string) string {
	var a strings.Builder
	heading = linkTarget.ReplaceAllString(heading, "]")
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			a.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			a.WriteRune(r)
		}
	}
	return a.String()
}

// commandLine matches acp-agent in code, with the words after it up to the agent's command.
var (
	commandLine = regexp.MustCompile(`(?:^|[\s"'(])acp-agent((?: [^\s|;&>#]+)+)`)
	commandName = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	commandFlag = regexp.MustCompile(`\s--([a-z][a-z-]*)`)
)

// TestDocsUseCommandsAndFlagsThatExist checks the command lines in the documents.
func TestDocsUseCommandsAndFlagsThatExist(t *testing.T) {
	checked := 0
	for name, text := range pages(t) {
		if name == "CHANGELOG.md" || name == "docs/internals/decisions.md" {
			continue // about earlier versions, too
		}
		for _, code := range codeIn(text) {
			for _, found := range commandLine.FindAllStringSubmatch(code, -1) {
				own, _, _ := strings.Cut(found[1]+" ", " -- ")
				words := strings.Fields(own)
				end := slices.IndexFunc(words, func(w string) bool { return !commandName.MatchString(w) })
				if end >= 0 {
					words = words[:end]
				}
				command, rest, err := newCommands(streams{}).Find(words)
				require.NoError(t, err, "%s: %s", name, code)
				require.False(t, command.HasSubCommands() && len(rest) > 0, "%s: %s", name, code)
				for _, f := range commandFlag.FindAllStringSubmatch(own, -1) {
					command.InitDefaultHelpFlag()
					require.NotNil(t, command.Flag(f[1]), "%s: %s: %s", name, code, f[1])
				}
				checked++
			}
		}
	}
	require.Greater(t, checked, 150)
}

// codeIn returns the lines of blocks of code in a document, and the code in its text.
func codeIn(text string) (code []string) {
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		code = append(code, strings.Split(strings.ReplaceAll(block[2], "\\\n", " "), "\n")...)
	}
	for _, span := range inCode.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
		code = append(code, strings.ReplaceAll(strings.Trim(span, "`"), "\n", " "))
	}
	return code
}

// TestDocsHaveShortParagraphs keeps paragraphs and the items of lists readable.
func TestDocsHaveShortParagraphs(t *testing.T) {
	const limit = 120 // words; most have fewer than 100
	item := regexp.MustCompile(`\n(\s*(?:[-*]|\d+\.) )`)
	for name, text := range pages(t) {
		if name == "docs/internals/conformance.md" || name == "docs/internals/decisions.md" {
			continue // one statement an entry
		}
		text = item.ReplaceAllString(fenced.ReplaceAllString(text, "\n"), "\n\n$1")
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			words := strings.Fields(paragraph)
			if len(words) > limit && !strings.Contains("\n"+paragraph, "\n|") {
				t.Errorf("%s: %d words: %s", name, len(words), strings.Join(words[:10], " "))
			}
		}
	}
}

// TestDeploymentsUseFlagsOfServe checks the examples in docs/operating/deploy, which no test runs.
func TestDeploymentsUseFlagsOfServe(t *testing.T) {
	files, err := filepath.Glob("../../docs/operating/deploy/*")
	require.NoError(t, err)
	require.Len(t, files, 6)
	root := newCommands(streams{})
	serve, _, err := root.Find([]string{"serve"})
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, ".yaml") {
			decoder := yaml.NewDecoder(bytes.NewReader(text))
			for err = error(nil); err == nil; {
				var document map[string]any
				err = decoder.Decode(&document)
			}
			require.True(t, errors.Is(err, io.EOF), "%s: %v", name, err)
		}
		commands := regexp.MustCompile(`\[?"?serve"?[ ,].*--.*`).FindAllString(string(text), -1)
		require.True(t, len(commands) > 0 || strings.HasSuffix(name, ".sql"), name)
		for _, command := range commands {
			for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(command, -1) {
				require.NotNil(t, serve.Flags().Lookup(flag[2:]), "%s: %s", name, flag)
			}
		}
		for _, variable := range regexp.MustCompile(`ACP_AGENT_[A-Z_]+`).FindAllString(string(text), -1) {
			flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "ACP_AGENT_"), "_", "-"))
			require.NotNil(t, serve.Flags().Lookup(flag), "%s: %s", name, variable)
		}
	}
}

// console matches a console block of the README: a command and its output.
var console = regexp.MustCompile(
	"(?sm)^````console\n\\$ ([^\n]+)\n(.*?)^````$|^```console\n\\$ ([^\n]+)\n(.*?)^```$")

// TestReadme runs the commands in the README and compares their output.
func TestReadme(t *testing.T) {
	needs.Programs(t, "sh")
	top, err := filepath.Abs("../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	require.NoError(t, err)
	binary := built(t)

	ran, tests := 0, false
	for _, block := range console.FindAllStringSubmatch(string(readme), -1) {
		command, shown := block[1]+block[3], block[2]+block[4]
		line, ours := strings.CutPrefix(command, "go run ./cmd/acp-agent ")
		if !ours {
			tests = tests || command == "go test ./..."
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), volume.Patience)
		defer cancel()
		run := exec.CommandContext(ctx, "sh", "-c", `"$0" `+line, binary)
		run.Dir = top
		run.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(),
			"XDG_CONFIG_HOME="+t.TempDir())
		printed, err := run.Output()
		require.NoError(t, err, command)
		require.Equal(t, shown, strings.ReplaceAll(string(printed), top, "/src/acp-agent"), command)
		ran++
	}
	require.Positive(t, ran, "the README has an example")
	require.True(t, tests, "the README explains how to run the tests")
}
