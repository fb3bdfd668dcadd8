package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/conform/schema"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// judgement has the faults of the lines of all processes, by the check that is about it.
type judgement struct {
	reasons []string
	lines   []rawrpc.Line
}

// judge returns what was found by judgeAll that the check of the row is about.
func (t *trial) judge() error {
	wrong := t.judged[t.row.ID]
	t.lines = wrong.lines
	if wrong.reasons == nil {
		return nil
	}
	return errors.New(strings.Join(wrong.reasons, "; "))
}

// judgeAll validates what a process has sent, except half a message at the end, because the process
// may have been ended meanwhile. Of each kind of error it keeps the first ones.
func (r *run) judgeAll(lines []rawrpc.Line) {
	const most = 3
	conversation, _ := schema.Follow(true) // Run has read it
	for _, line := range lines {
		if !line.FromAgent {
			conversation.Client(line.Text)
			continue
		}
		if line.Unfinished {
			return
		}
		id, reason := judgeLine(line.Text, conversation.Agent(line.Text))
		of := r.judged[id]
		if id != "" && len(of.reasons) < most && !slices.Contains(of.reasons, reason) {
			r.judged[id] = judgement{append(of.reasons, reason), append(of.lines, line)}
		}
	}
}

// judgeLine returns the check that a line of the agent fails, and why. err is that of the schema.
func judgeLine(line string, err error) (id, reason string) {
	var m rawrpc.Message
	_ = json.Unmarshal([]byte(line), &m)
	notOffered := []string{protocol.FilePrefix, protocol.TerminalPrefix, protocol.ElicitationPrefix}
	calls := func(prefix string) bool { return m.ID != nil && strings.HasPrefix(m.Method, prefix) }
	if slices.ContainsFunc(notOffered, calls) {
		return "A26.client", "it calls " + m.Method
	}
	switch {
	case err == nil:
		return "", ""
	case errors.Is(err, schema.ErrUndefined):
		return "A37.members", err.Error()
	case errors.Is(err, schema.ErrInvalid):
		return "W1.schema", err.Error()
	case errors.Is(err, schema.ErrAnswer):
		return "W1.answers", err.Error()
	}
	return "W1.lines", err.Error()
}

// exchanged returns what was sent and received during a check.
func (r *run) exchanged(lines []rawrpc.Line) (sent, received []string) {
	const most = 6
	for _, line := range lines {
		to := &sent
		if line.FromAgent {
			to = &received
		}
		if len(*to) < most {
			*to = append(*to, r.shown(r.withoutOthers(line.Text)))
		} else if len(*to) == most {
			*to = append(*to, "…")
		}
	}
	return sent, received
}

// shown returns a text for the report: short, without secrets and the name of our directory.
func (r *run) shown(s string) string {
	const enough = 4096 // before secrets are replaced, which takes time
	s = strings.ReplaceAll(s, r.scratch, "DIR")
	if len(s) > enough {
		s = r.secrets.Start(s[:enough])
	} else {
		s = r.secrets.Text(s)
	}
	return masked(s)
}

// masked returns a text on one line, without secrets.
func masked(s string) string { return text.Line(secret.Mask(s), 400) }

// withoutOthers removes the sessions of the user from a list, which a report may be shared without.
func (r *run) withoutOthers(line string) string {
	var m struct {
		ID     json.RawMessage
		Result struct{ Sessions []json.RawMessage }
	}
	_ = json.Unmarshal([]byte(line), &m) // then it is no list
	isOther := func(session json.RawMessage) bool { return !r.made[sessionID(session)] }
	if !slices.ContainsFunc(m.Result.Sessions, isOther) {
		return line
	}
	all := len(m.Result.Sessions)
	ours := slices.DeleteFunc(m.Result.Sessions, isOther)
	shown, _ := json.Marshal(ours) // it is JSON
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"sessions":%s}} `+
		`and %d sessions of others`, m.ID, shown, all-len(ours))
}
