package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
