package commands

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

const rootsUsage = "Type `/roots` to see the folders of this session, " +
	"`/roots add DIR` to add one, `/roots add --read-only DIR` to add one in which nothing may " +
	"be changed, or `/roots remove DIR` to remove one. " +
	"A relative DIR starts at the working directory, and `~` is your home directory. " +
	"`/roots add FILE` adds the folders that a file lists: " +
	"*.code-workspace, go.work, pnpm-workspace.yaml or package.json.\n"

// answerRoots answers /roots: it shows the session's folders, and adds or removes one. A change
// asks the user, and then opens the session again with the new list, as a session/resume does, but
// within the turn of the prompt.
func (t *turn) answerRoots(typed prompts.Command) error {
	// The blocks after it may be an editor's.
	_, rest := text.CutWord(strings.TrimLeftFunc(typed.Block.Text, unicode.IsSpace))
	verb, argument := text.CutWord(rest)
	option, folder := text.CutWord(argument)
	readOnly := verb == "add" && option == "--read-only"
	if readOnly {
		argument = folder
	}
	switch {
	case verb == "":
		return t.showRoots()
	case verb == "add" && argument != "":
		return t.addFolders(argument, readOnly)
	case verb == "remove" && argument != "":
		return t.removeFolder(argument)
	}
	return t.Write(rootsUsage)
}

// showRoots answers /roots.
func (t *turn) showRoots() error {
	var b strings.Builder
	w := t.roots()
	for i, root := range LabelRoots(w) {
		state, err := tasks.FromDisk(t.ctx, t.Tasks, func() (workspace.State, error) {
			return w.State(i)
		})
		if err != nil {
			return err
		}
		role := ""
		if i == 0 {
			role = ", the working directory: relative paths start here"
		}
		if root.Grant == workspace.ReadOnly {
			role += ", read-only"
		}
		fmt.Fprintf(&b, "Folder %d: **%s**%s\n\n", i, text.Code(root.Label), role)
		fmt.Fprintf(&b, "- path: %s\n- real path: %s\n- URI: %s\n- from: %s\n- state: %s\n\n",
			text.Code(root.Dir.String()), text.Code(root.Real.String()), text.Code(root.Real.URI()),
			text.Printable(cmp.Or(t.session.Folders().Setting(root.Dir), t.Client)),
			cmp.Or(describedStates[state], string(state)))
	}
	return t.Write(b.String() + t.session.Sandbox())
}

// describedStates has what people are told of the states of a root that need an explanation.
var describedStates = map[workspace.State]string{
	workspace.Moved: "moved: the directory has another path now; the session still uses it",
	workspace.Replaced: "replaced: the path names another directory now; the session still uses " +
		"the original one",
	workspace.Missing:     "missing: the directory has been deleted",
	workspace.Unreachable: "unreachable: the path cannot be looked up",
}
