package acp

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/commands"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// broadRoots returns a message to the user about roots with far more in them than a project, or "".
// It leaves out the roots in known, which the user was told about before.
func broadRoots(opened []workspace.Root, known workspace.Roots, log *slog.Logger) string {
	told := make(map[workspace.Dir]bool)
	for _, dir := range known.All() {
		told[dir] = true
	}
	var b strings.Builder
	for _, root := range opened {
		what := commands.BroadFolder(root.Real)
		if what != "" && !told[root.Dir] {
			log.Warn("a root is very large", "root", root.Dir, "reason", what)
			fmt.Fprintf(&b, "The folder %s %s. This session reaches everything in it, %s. "+
				"Open a project folder instead to avoid that.\n\n", text.Code(root.Dir.String()), what,
				commands.BroadGrant)
		}
	}
	return b.String()
}

// pendingNotice has the text that the user of a session is shown at the next prompt.
type pendingNotice struct {
	text     string
	prompted bool // there was one: the user knows what does not change with the folders
}

// findings are what the user may be told about a session that was opened.
type findings struct {
	moved   string // roots that lead elsewhere than before
	said    string // the backend's notice
	dropped string // roots that the session has lost
	// broad says which roots have far more in them than a project, besides those that are known.
	broad func(known workspace.Roots) string
}

// notices returns what the user is told about a session that was opened: now, about what they have
// just done, and with the next prompt. before is what the session that it replaces has not told
// yet, or nil.
func (o opening) notices(before *pendingNotice, f findings) (now string, next pendingNotice) {
	now, next = f.moved+f.said, pendingNotice{prompted: true}
	known := o.source.Keys.Roots
	switch {
	case o.isFirst():
		now, next, known = f.moved, pendingNotice{text: f.said}, workspace.Roots{}
	case before != nil:
		next = *before
	case o.source.Turns == 0:
		next.prompted, known = o.source.Title != "", workspace.Roots{}
	}
	if !o.forAll { // otherwise the user was asked
		next.text += f.dropped + f.broad(known)
	}
	return now, next
}

// showNotice shows the session's notice, once and without recording it. It waits for the first
// prompt, because some editors drop what they receive between prompts.
func (s *session) showNotice(ctx context.Context) {
	pending := s.conversation.notice.Load()
	message := pending.text
	if !pending.prompted {
		listed, err := s.catalog.ListedFolders(ctx)
		if err != nil {
			return // the turn or the session has ended
		}
		message += listed + s.adapter.doubt(ctx, s.storeID)
		if s.access.Permits.Configured != nil && s.adapter.info().NeverAsks {
			message += whyUnruled(s.adapter.info().Info) + "\n\n"
		}
	}
	// A cancelled turn may come to this after the session was opened again, which has all of it.
	isCurrent := s.conversation.notice.CompareAndSwap(pending, &pendingNotice{prompted: true})
	if isCurrent && message != "" {
		s.viewers.ShowAll(ctx, backend.Warning(backend.Text(message)))
	}
}

// doubt returns a message to the user about a backend that may have other sessions, or "" once one
// of its sessions besides the one with this id was used here.
func (a *adapter) doubt(ctx context.Context, id sessionstore.ID) string {
	doubt := a.info().Doubt
	if doubt == "" {
		return ""
	}
	page, err := a.options.Store.List(ctx, sessionstore.Query{
		Agent: a.identity(), Archive: sessionstore.ArchivedToo})
	if err != nil || slices.ContainsFunc(page.Sessions, func(other sessionstore.Session) bool {
		return other.ID != id && other.Turns > 0
	}) {
		return ""
	}
	return doubt + "\n\n"
}

// maxNoticeTitle is the maximum length of the title of a notice, in characters.
const maxNoticeTitle = 100

// formsOf returns what the client is sent in place of an update that may be a [backend.Warning]: a
// notice for each paragraph if it shows notices, otherwise the message.
func (c *connection) formsOf(u backend.Update) (forms []backend.Update) {
	message, ok := backend.WarningMessage(u)
	switch {
	case !ok:
		return []backend.Update{u}
	case !c.clientCapabilities().declares(protocol.Notices):
		return []backend.Update{message}
	}
	for paragraph := range strings.SplitSeq(backend.ChunkText(message), "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
			forms = append(forms, newNotice(paragraph))
		}
	}
	return forms
}

// newNotice returns a notice whose title is the beginning of a text, up to the end of its first
// sentence if that is short.
func newNotice(said string) backend.Update {
	type notice struct {
		Kind        sessionstore.Kind `json:"sessionUpdate"`
		Severity    string            `json:"severity"`
		Title       string            `json:"title"`
		Description string            `json:"description,omitempty"`
	}
	title, rest, several := strings.Cut(said, ". ")
	if several {
		title += "."
	}
	if line, more, cut := strings.Cut(title, "\n"); cut {
		title, rest = line, strings.TrimSuffix(more+" "+rest, " ")
	}
	if short := text.Truncate(title, maxNoticeTitle); short != title {
		title, rest = short, said
	}
	return backend.NewUpdate(notice{sessionstore.Notice, "warning", title, rest})
}

// whyUnruled says what rules are worth for an agent that does not ask.
func whyUnruled(b backend.Info) string {
	asks := " asks for no permission: your rules about permissions do not hold for it."
	if !b.NeverAsks {
		asks = " changes files and runs commands without asking: your rules about permissions do " +
			"not hold for that. It asks " + b.AsksLittle + "."
	}
	if b.ServerSandbox.Mode != backend.SandboxOff {
		return text.Name(b.Profile) + asks + " Its sandbox restricts it."
	}
	return text.Name(b.Profile) + asks +
		" Use the sandbox, `--sandbox write`, if it should not do everything."
}
