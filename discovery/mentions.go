package discovery

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// The most paths for which instructions are looked up at once, and the most instruction files that
// are mentioned.
const (
	maxMentionPaths = 16
	maxMentioned    = 1000
)

// maxSkillMention is the maximum length of the description of a mentioned skill, in bytes.
const maxSkillMention = 200

// Mentions tells a model about the instructions and skills of directories below the roots when it
// uses something in them, and about the roots' instructions for some files when it uses one of
// these. It mentions each file once, even if links lead to it. The zero value has mentioned
// nothing. It is safe for concurrent use.
type Mentions struct {
	// Roots makes Lines also name all other instructions of the roots' own directories, for models
	// that are not told about them in another way.
	Roots bool

	mu   sync.Mutex
	told map[workspace.Ref]bool
}

// Lines returns lines for a model that name the instructions for the paths and of the directories
// that contain them, or "". It ignores empty paths, and paths that no longer exist.
func (m *Mentions) Lines(ctx context.Context, ws *workspace.Workspace, paths ...string) string {
	var b strings.Builder
	instructions := rowsThat(func(r row) bool { return r.kind == Instruction })
	for _, path := range paths[:min(len(paths), maxMentionPaths)] {
		if path == "" {
			continue
		}
		list, err := leadingTo(ctx, ws, defaultLimits, path, nil, instructions)
		if err != nil {
			continue // after a move, for example
		}
		info, err := ws.Stat(path)
		for _, a := range list {
			known := a.dir == "." && a.Applies.Mode != ByPath && !m.Roots
			if a.State != Active || known {
				continue
			}
			isNew := m.markNew(a.Ref)
			read := err == nil && info.Ref() == a.Ref
			switch {
			case !isNew || read:
			case a.Kind == Skill && !a.UserOnly:
				fmt.Fprintf(&b, "[What is in %q has a skill: read %q when you need it: %s]\n",
					a.Dir(), a.Path, text.Prefix(a.Description, maxSkillMention))
			case a.Applies.Mode == ByPath:
				fmt.Fprintf(&b, "[Files in %q that match %s have instructions: "+
					"read %q before you go on.]\n",
					a.Dir(), text.Line(strings.Join(a.Applies.Globs, ", "), maxEntry), a.Path)
			case a.Kind == Instruction:
				fmt.Fprintf(&b, "[What is in %q has instructions: read %q before you go on.]\n",
					a.Dir(), a.Path)
			}
		}
	}
	return b.String()
}

// markNew marks a file as mentioned, and reports whether it was not before.
func (m *Mentions) markNew(file workspace.Ref) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told[file] || len(m.told) >= maxMentioned {
		return false
	}
	if m.told == nil {
		m.told = make(map[workspace.Ref]bool)
	}
	m.told[file] = true
	return true
}
