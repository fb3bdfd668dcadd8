package runner

import (
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Cost returns a line that says what a turn and its session have cost, from the response to the
// prompt. It returns "" if the agent has reported nothing.
func Cost(response json.RawMessage) string {
	var cost struct {
		Turn    map[string]float64 `json:"turn"`
		Session map[string]float64 `json:"session"`
	}
	raw := strictjson.Find(response, "_meta", "acp-agent", "cost")
	if len(raw) == 0 || json.Unmarshal(raw, &cost) != nil || len(cost.Session) == 0 {
		return ""
	}
	joined := func(sums map[string]float64) string { return strings.Join(text.Amounts(sums), " + ") }
	said := "cost of the session " + joined(cost.Session)
	if len(cost.Turn) > 0 {
		said = "cost of the turn " + joined(cost.Turn) + ", of the session " + joined(cost.Session)
	}
	return said + ", as reported by the agent"
}
