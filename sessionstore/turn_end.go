package sessionstore

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// TurnEndUpdate is the kind of the update that ends the history of a turn and says how it ended.
// Backends are not sent it, and clients only if they declare what it [Kind.Needs]. [TurnEnded]
// makes one and [Update.EndNote] describes it. Code that does not know the kind skips it.
const TurnEndUpdate Kind = "acp-agent/turn_end"

// TurnEnded returns the update of a turn that ended with a stop reason or, if failure is not "",
// failed with this text.
func TurnEnded(stopReason, failure string) Update {
	end, err := json.Marshal(struct {
		Kind       Kind   `json:"sessionUpdate"`
		StopReason string `json:"stopReason,omitempty"`
		Error      string `json:"error,omitempty"`
	}{TurnEndUpdate, stopReason, failure})
	if err != nil {
		panic("sessionstore: the end of a turn cannot be encoded: " + err.Error())
	}
	return StoredUpdate(fmt.Appendf(nil, `{"update":%s}`, end))
}

// EndNote returns a note to the user that says how a turn ended, if u ends one that was not
// answered to its end.
func (u Update) EndNote() (note Update, ok bool) {
	var end struct {
		StopReason string `json:"stopReason"`
		Error      string `json:"error"`
	}
	if u.Kind != TurnEndUpdate || strictjson.Decode(u.Body(), &end) != nil {
		return Update{}, false
	}
	switch {
	case end.Error != "":
		return noteUpdate("(The turn failed: " + end.Error + ")"), true
	case end.StopReason == "cancelled":
		return noteUpdate("(The turn was cancelled.)"), true
	case end.StopReason != "" && end.StopReason != "end_turn":
		return noteUpdate("(The turn was stopped: " + end.StopReason + ")"), true
	}
	return Update{}, false
}

// WithoutEnds yields a history without the ends of turns, as backends get it.
func WithoutEnds(history iter.Seq2[Update, error]) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		for u, err := range history {
			if u.Kind != TurnEndUpdate && !yield(u, err) {
				return
			}
		}
	}
}

// noteUpdate returns a note to the user, which is not text of the agent: see [Passages].
func noteUpdate(note string) Update {
	text, _ := json.Marshal(note + "\n\n")
	return StoredUpdate(fmt.Appendf(nil, `{"update":{"sessionUpdate":"agent_message_chunk",`+
		`"_meta":{"acp-agent":{"note":true}},"content":{"type":"text","text":%s}}}`, text))
}
