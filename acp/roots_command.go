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

// The adapter answers the slash command /roots itself, whatever backend a session has: it shows the
// session's folders, and adds or removes one. A change asks the user, and then opens the session
// again with the new list, as a session/resume does, but within the turn of the prompt.

const rootsUsage = "Type `/roots` to see the folders of this session, " +
	"`/roots add DIR` to add one, `/roots add --read-only DIR` to add one in which nothing may be " +
	"changed, or `/roots remove DIR` to remove one. " +
	"A relative DIR starts at the working directory, and `~` is your home directory. " +
	"`/roots add FILE` adds the folders that a file lists: " +
	"*.code-workspace, go.work, pnpm-workspace.yaml or package.json.\n"

// rootsCommand is a /roots that the user typed.
type rootsCommand struct {
	verb     string // "add", "remove", or "" to show the folders
	argument string
	readOnly bool // add them with --read-only
}

// parseRootsCommand returns the /roots that the user typed.
func parseRootsCommand(typed prompts.Command) (c rootsCommand) {
	// The blocks after it may be an editor's.
	_, rest := text.CutWord(strings.TrimLeftFunc(typed.Block.Text, unicode.IsSpace))
	c.verb, c.argument = text.CutWord(rest)
	if option, rest := text.CutWord(c.argument); c.verb == "add" && option == "--read-only" {
		c.argument, c.readOnly = rest, true
	}
	return c
}

// rootsReply answers /roots.
type rootsReply struct{ *ownTurn }

// answer answers the command. An error that the user can correct is part of the answer.
func (r rootsReply) answer(c rootsCommand) (backend.Raw, error) {
	var err error
	switch {
	case c.verb == "":
		err = r.show()
	case c.verb == "add" && c.argument != "":
		err = r.add(c.argument, c.readOnly)
	case c.verb == "remove" && c.argument != "":
		err = r.remove(c.argument)
	default:
		err = r.say(rootsUsage)
	}
	return r.end(err, "The folders of this session were not changed: ")
}

// shownPath returns a path as Markdown.
func shownPath(dir workspace.Dir) string { return text.Code(text.Printable(dir.String())) }

// show answers /roots.
func (r rootsReply) show() error {
	var b strings.Builder
	w, labels := r.session.workspace, r.session.workspace.Labels()
	folders := foldersByDir(r.session.params.additional())
	for i, root := range w.Opened() {
		state, err := tasks.FromDisk(r.ctx, r.agent.tasks, func() (workspace.State, error) {
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
			from = r.session.agent.connection.clientCapabilities().name
		}
		fmt.Fprintf(&b, "Folder %d: **%s**%s\n\n", i, text.Code(labels[i]), role)
		fmt.Fprintf(&b, "- path: %s\n- real path: %s\n- URI: %s\n- from: %s\n- state: %s\n\n",
			text.Code(root.Dir.String()), text.Code(root.Real.String()), text.Code(root.Real.URI()),
			text.Printable(from), describeState(state))
	}
	if mode := r.agent.info().Sandbox; mode != "" {
		fmt.Fprintf(&b, "Sandbox of the agent: %s\n\n", mode)
	}
	if confined, ok := r.session.backend.(backend.Confined); ok {
		b.WriteString(confined.Grants())
	}
	if r.agent.info().MCP == backend.BackendConnects {
		return r.say(b.String())
	}
	servers := r.session.servers.set.Servers()
	if len(servers) == 0 {
		b.WriteString("MCP servers: none\n")
	} else {
		b.WriteString("MCP servers:\n\n")
	}
	for _, s := range servers {
		fmt.Fprintf(&b, "- %s (%s): %s\n", text.Code(s.Name), s.Transport, s.State)
	}
	return r.say(b.String())
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
