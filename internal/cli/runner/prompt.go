package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// mention matches @PATH or @"PATH" at the beginning of a word. It has the submatches: what is
// before the @, the quoted path, and the other path.
var mention = text.Pattern(`(^|[\s(\[])@(?:"([^"\n]+)"|(\S+))`)

// Prompt is the user's message to the agent.
type Prompt struct {
	Text string
	// Data follows the text, unchanged.
	Data string
}

// Blocks returns the prompt as content blocks. As editors do, it replaces mentions of files and
// directories in the text, such as @src/main.go, by links: of a slash command, those in its first
// line. A relative path starts in one of dirs, the first in which it exists. What does not exist
// stays text.
func (p Prompt) Blocks(dirs []string) []sdk.ContentBlock {
	var blocks []sdk.ContentBlock
	add := func(text string) {
		if text != "" {
			blocks = append(blocks, sdk.TextBlock(text))
		}
	}
	searched, end := p.Text, 0
	if strings.HasPrefix(strings.TrimSpace(searched), "/") {
		searched, _, _ = strings.Cut(searched, "\n")
	}
	for _, at := range mention().FindAllStringSubmatchIndex(searched, -1) {
		from, to := at[4], at[5]
		if from < 0 {
			from, to = at[6], at[7]
		}
		name := searched[from:to]
		path := find(name, dirs)
		if path.IsZero() && at[6] >= 0 {
			name = strings.TrimRight(name, ".,;:!?)]}'\"")
			path = find(name, dirs)
		}
		if path.IsZero() {
			continue
		}
		add(p.Text[end:at[3]])
		blocks = append(blocks, sdk.ResourceLinkBlock(filepath.Base(path.String()), path.URI()))
		end = at[1] - (to - from - len(name))
	}
	rest := p.Text[end:]
	if strings.TrimSpace(p.Data) != "" {
		rest += "\n\n" + p.Data
	}
	add(rest)
	return blocks
}

// find returns the path of an existing file or directory, or the zero Dir.
func find(name string, dirs []string) (found workspace.Dir) {
	if name == "" {
		return found
	}
	name, err := namedfile.ExpandHome(name)
	if err != nil {
		return found
	}
	if filepath.IsAbs(name) {
		dirs = []string{""}
	}
	for _, dir := range dirs {
		path, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			found, _ = workspace.ParseDir(path) // or it is not UTF-8
			return found
		}
	}
	return found
}

// Cost returns a line that says what a turn and its session have cost, from the response to the
// prompt. It returns "" if the agent has reported nothing.
func Cost(response json.RawMessage) string {
	var cost struct {
		Turn    map[string]float64 `json:"turn"`
		Session map[string]float64 `json:"session"`
	}
	raw := strictjson.Find(protocol.FindOurs(response), "cost")
	if len(raw) == 0 || json.Unmarshal(raw, &cost) != nil || len(cost.Session) == 0 {
		return ""
	}
	joined := func(sums map[string]float64) string { return strings.Join(text.Amounts(sums), " + ") }
	said := "cost of the session " + joined(cost.Session)
	if len(cost.Turn) > 0 {
		said = "cost of the turn " + joined(cost.Turn) + ", of the session " + joined(cost.Session)
	}
	return said + ", as reported by the agent"
}
