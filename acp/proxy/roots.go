package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/strict"
	"github.com/acp-agent/acp-agent/workspace"
)

const rootsMember = "additionalDirectories"

// rootsFor fits the roots in a lifecycle request to what the child can do: to one that supports
// additional roots each is sent once (P2), to another none. Those that it was not sent are returned.
func rootsFor(a client.Agent, params runtime.Raw) (fitted runtime.Raw, unsent workspace.Dirs, err error) {
	var given struct {
		Cwd        string   `json:"cwd"`
		Additional []string `json:"additionalDirectories"`
	}
	if err := json.Unmarshal(params, &given); err != nil {
		return nil, workspace.Dirs{}, err
	}
	if given.Additional == nil {
		return params, workspace.Dirs{}, nil
	}
	roots, err := workspace.NewRoots(given.Cwd, given.Additional)
	if err != nil {
		return nil, workspace.Dirs{}, err
	}
	if !a.AdditionalDirectories {
		_, fitted, err = strict.Take(params, rootsMember)
		return fitted, roots.Additional(), err
	}
	list, err := json.Marshal(roots.Additional())
	if err != nil {
		return nil, workspace.Dirs{}, err
	}
	fitted, err = strict.Put(params, rootsMember, list)
	return fitted, workspace.Dirs{}, err
}

// maxIntroduction bounds the paths in an introduction, in bytes.
const maxIntroduction = 16 << 10

// introduction is the context that tells a child of roots which it cannot be sent, "" if there are none.
func introduction(others workspace.Dirs) string {
	if others.Len() == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<acp-agent-context>\nThis session also includes these directories, besides the working directory:\n")
	for i, dir := range others.All() {
		path := fmt.Sprintf("- %q\n", dir)
		if b.Len()+len(path) > maxIntroduction {
			fmt.Fprintf(&b, "- and %d more\n", others.Len()-i)
			break
		}
		b.WriteString(path)
	}
	b.WriteString("Relative paths start at the working directory; use absolute paths for files in the others.\n</acp-agent-context>")
	return b.String()
}

// introduced puts a text before a prompt's own content.
func introduced(params runtime.Raw, text string) (runtime.Raw, error) {
	if text == "" {
		return params, nil
	}
	prompt, _, err := strict.Take(params, "prompt")
	if err != nil {
		return nil, err
	}
	content := bytes.TrimSpace(prompt)
	if len(content) == 0 || content[0] != '[' {
		return params, nil // the child says what is wrong with it
	}
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		return nil, err
	}
	longer := append([]byte{'['}, block...)
	if rest := bytes.TrimSpace(content[1:]); len(rest) > 0 && rest[0] != ']' {
		longer = append(longer, ',')
	}
	return strict.Put(params, "prompt", append(longer, content[1:]...))
}
