package runner

import (
	"encoding/json"
	"maps"
	"slices"
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
	said := "cost of the session " + amounts(cost.Session)
	if len(cost.Turn) > 0 {
		said = "cost of the turn " + amounts(cost.Turn) + ", of the session " + amounts(cost.Session)
	}
	return said + ", as reported by the agent"
}

// amounts returns amounts with their currencies.
func amounts(byUnit map[string]float64) string {
	var all []string
	for _, unit := range slices.Sorted(maps.Keys(byUnit)) {
		all = append(all, text.Money(byUnit[unit], unit))
	}
	return strings.Join(all, " + ")
}
