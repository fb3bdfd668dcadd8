package acp

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
func (o *ownTurn) answerFork(c prompts.Command) error {
	turn, err := strconv.ParseInt(strings.TrimSpace(c.Arguments), 10, 64)
	if err != nil {
		return o.listTurns(c.Name)
	}
	return o.forkBefore(turn)
}

// listTurns shows the last turns, and how to copy what was said before one.
func (o *ownTurn) listTurns(name string) error {
	const most = 20
	var c sessionstore.TurnCounter
	var turns []string
	for u, err := range o.agent.options.Store.Finished(o.ctx, o.session.storeID) {
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
	return o.Write(fmt.Sprintf("%s\nType `/%s TURN`, with the number of one of these turns, to copy "+
		"what was said before it into a new session. Files are not changed.\n",
		cmp.Or(strings.Join(turns, ""), "No turn of this session has ended.\n"), name))
}

// forkBefore stores the copy.
func (o *ownTurn) forkBefore(turn int64) error {
	source, err := o.agent.sessions.Stored(o.ctx, o.session.id)
	if err != nil {
		return err
	}
	n := backend.NewCopy(source, fmt.Sprintf("before turn %d", turn))
	if err := sessionstore.ForkBefore(o.ctx, o.agent.options.Store, source.ID, turn, n); err != nil {
		return err
	}
	run := ""
	if !o.agent.remote {
		run = ", or run `acp-agent run --resume " + string(n.ID) + " PROMPT`"
	}
	return o.Write(fmt.Sprintf("Copied what was said before turn %d into the session %s, which has "+
		"the same folders. Files were not changed back. To go on there, load it in your "+
		"editor%s.\n", turn, text.Code(string(n.ID)), run))
}
