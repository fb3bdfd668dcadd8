package commands

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// answerFork answers /fork: it copies what was said before a turn into a new session. It does not
// change the present one.
func (t *turn) answerFork(c prompts.Command) error {
	turn, err := strconv.ParseInt(strings.TrimSpace(c.Arguments), 10, 64)
	if err != nil {
		return t.listTurns(c.Name)
	}
	source, err := t.Store.Get(t.ctx, t.id)
	if err != nil {
		return err
	}
	n := backend.NewCopy(source, fmt.Sprintf("before turn %d", turn))
	if err := sessionstore.ForkBefore(t.ctx, t.Store, t.id, turn, n); err != nil {
		return err
	}
	run := ""
	if !t.Remote {
		run = ", or run `acp-agent run --resume " + string(n.ID) + " PROMPT`"
	}
	return t.Write(fmt.Sprintf("Copied what was said before turn %d into the session %s, which has "+
		"the same folders. Files were not changed back. To go on there, load it in your "+
		"editor%s.\n", turn, text.Code(string(n.ID)), run))
}

// listTurns shows the last turns, and how to copy what was said before one.
func (t *turn) listTurns(name string) error {
	const most = 20
	var c sessionstore.TurnCounter
	var turns []string
	for u, err := range t.Store.Finished(t.ctx, t.id) {
		if err != nil {
			return err
		}
		if n, begins := c.Next(u); begins {
			said := text.Line(text.Plain(backend.ChunkText(u)), 80)
			turns = append(turns, fmt.Sprintf("- %d: %s\n",
				n, text.Code(cmp.Or(said, "(no text)"))))
			turns = turns[max(0, len(turns)-most):]
		}
	}
	return t.Write(fmt.Sprintf("%s\nType `/%s TURN`, with the number of one of these turns, to copy "+
		"what was said before it into a new session. Files are not changed.\n",
		cmp.Or(strings.Join(turns, ""), "No turn of this session has ended.\n"), name))
}
