package acp

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/acp/backend"
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
func (o *ownTurn) answerRoots(typed prompts.Command) error {
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
		return o.showRoots()
	case verb == "add" && argument != "":
		return o.addFolders(argument, readOnly)
	case verb == "remove" && argument != "":
		return o.removeFolder(argument)
	}
	return o.Write(rootsUsage)
}

// shownPath returns a path as Markdown.
func shownPath(dir workspace.Dir) string { return text.Code(text.Printable(dir.String())) }

// showRoots answers /roots.
func (o *ownTurn) showRoots() error {
	var b strings.Builder
	w, labels := o.session.workspace, o.session.workspace.Labels()
	folders := foldersByDir(o.session.params.additional())
	for i, root := range w.Opened() {
		state, err := tasks.FromDisk(o.ctx, o.agent.tasks, func() (workspace.State, error) {
			return w.State(i)
		})
		if err != nil {
			return err
		}
		role, from := "", folders[root.Dir].Setting
		if i == 0 {
			role = ", the working directory: relative paths start here"
		}
		if root.Grant == workspace.ReadOnly {
			role += ", read-only"
		}
		if i == 0 || from == clientSetting {
			from = o.session.agent.connection.clientCapabilities().name
		}
		fmt.Fprintf(&b, "Folder %d: **%s**%s\n\n", i, text.Code(labels[i]), role)
		fmt.Fprintf(&b, "- path: %s\n- real path: %s\n- URI: %s\n- from: %s\n- state: %s\n\n",
			text.Code(root.Dir.String()), text.Code(root.Real.String()), text.Code(root.Real.URI()),
			text.Printable(from), describeState(state))
	}
	if mode := o.agent.info().Sandbox; mode != "" {
		fmt.Fprintf(&b, "Sandbox of the agent: %s\n\n", mode)
	}
	if confined, ok := o.session.backend.(backend.Confined); ok {
		b.WriteString(confined.SandboxText())
	}
	return o.Write(b.String())
}

func describeState(state workspace.State) string {
	switch state {
	case workspace.OK:
		return "ok"
	case workspace.Moved:
		return "moved: the directory has another path now; the session still uses it"
	case workspace.Replaced:
		return "replaced: the path names another directory now; the session still uses the " +
			"original one"
	case workspace.Missing:
		return "missing: the directory has been deleted"
	case workspace.Unreachable:
		return "unreachable: the path cannot be looked up"
	default:
		return string(state)
	}
}
