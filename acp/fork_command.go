package acp

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// forkReply answers the slash command /fork, whatever backend a session has: it copies what was said
// before a turn into a new session. It does not change the present one.
type forkReply struct{ *ownTurn }

// answer answers the command, which the user typed with this name.
func (f forkReply) answer(name, turn string) (backend.Raw, error) {
	n, err := strconv.ParseInt(turn, 10, 64)
	if err != nil {
		return f.end(f.list(name), "")
	}
	return f.end(f.fork(n), "No copy was made: ")
}

// list shows the last turns, and how to copy what was said before one.
func (f forkReply) list(name string) error {
	const most = 20
	var c sessionstore.TurnCounter
	var turns []string
	for u, err := range f.agent.options.Store.Finished(f.ctx, f.session.stored) {
		if err != nil {
			return err
		}
		if n, begins := c.Next(u); begins {
			said := text.Line(text.Plain(backend.ChunkText(u)), 80)
			turns = append(turns, fmt.Sprintf("- %d: %s\n", n, text.Code(cmp.Or(said, "(no text)"))))
			turns = turns[max(0, len(turns)-most):]
		}
	}
	return f.say(fmt.Sprintf("%s\nType `/%s TURN`, with the number of one of these turns, to copy what was "+
		"said before it into a new session. Files are not changed.\n",
		cmp.Or(strings.Join(turns, ""), "No turn of this session has ended.\n"), name))
}

// fork stores the copy.
func (f forkReply) fork(turn int64) error {
	source, err := f.agent.sessions.Stored(f.ctx, f.session.id)
	if err != nil {
		return err
	}
	n := backend.NewCopy(source, fmt.Sprintf("before turn %d", turn))
	if err := sessionstore.ForkBefore(f.ctx, f.agent.options.Store, source.ID, turn, n); err != nil {
		return err
	}
	run := ""
	if !f.agent.remote {
		run = ", or run `acp-agent run --resume " + string(n.ID) + " PROMPT`"
	}
	return f.say(fmt.Sprintf("Copied what was said before turn %d into the session %s, which has the same "+
		"folders. Files were not changed back. To go on there, load it in your editor%s.\n",
		turn, text.Code(string(n.ID)), run))
}
