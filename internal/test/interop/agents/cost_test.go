package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// costs is what acp-agent sessions cost prints.
type costs struct {
	Total costLine
	Notes []string
}

type costLine struct {
	Cost   map[string]float64
	Tokens map[string]float64
	Turns  int

	CostIncomplete, TokensIncomplete bool
}

// cost returns what all sessions have cost.
func (s *stage) cost(t *testing.T) (c costs) {
	t.Helper()
	cmd := exec.Command(program.Path(), "--state-dir", s.state, "sessions", "cost", "--json")
	cmd.Env = append(cmd.Environ(), s.env...)
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &c))
	return c
}

// usedSince returns the tokens of the turns in the requests after the first n.
func (s *stage) usedSince(n int) (input, output float64) {
	for _, r := range s.model.Requests()[n:] {
		if r.Asks() {
			in, out := r.Used()
			input, output = input+float64(in), output+float64(out)
		}
	}
	return input, output
}

// inDollars returns the sum of what the agent has said that its turns cost.
func inDollars(line costLine) float64 { return line.Cost["USD"] }

// What real agents report is counted once: three turns, a kill, two more turns, and a fork of the
// session, compared with what the model's server has counted.
//
// Clause K1.
func TestCostOfRealAgents(t *testing.T) {
	onlyInSurvey(t)
	t.Parallel()
	for _, subject := range []subject{priced(opencode), claude} {
		t.Run(subject.name, func(t *testing.T) {
			t.Parallel()
			s := onStage(t, subject)
			e := s.behind(t, noFiles)
			made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t)})
			require.NoError(t, err)
			turn := func(id, words string) {
				t.Helper()
				s.prompt(e, id, words, modelserver.Say("Said at some length: "+words))
			}
			for _, words := range []string{"One.", "Two.", "Three."} {
				turn(made.ID, words)
			}
			before := s.cost(t).Total
			s.compare(t, before, 0, 3, 0)
			e.kill()

			asked := len(s.model.Requests())
			e = s.behind(t, noFiles)
			_, err = e.ResumeSession(within(t), made.ID, client.Setup{Roots: s.roots(t)})
			require.NoError(t, err)
			turn(made.ID, "Four.")
			turn(made.ID, "Five.")
			after := s.cost(t).Total
			s.compare(t, after, 0, 5, 0)
			s.compare(t, minus(after, before), asked, 2, inDollars(before)/3)

			asked = len(s.model.Requests())
			fork, err := e.ForkSession(within(t), made.ID, client.Setup{Roots: s.roots(t)})
			require.NoError(t, err)
			turn(fork.ID, "Six.")
			all := s.cost(t)
			s.compare(t, minus(all.Total, after), asked, 1, inDollars(before)/3)
			require.False(t, all.Total.CostIncomplete, "%q", all.Notes)
		})
	}
}

// minus returns what was used since an earlier line.
func minus(line, earlier costLine) costLine {
	since := costLine{Cost: map[string]float64{}, Tokens: map[string]float64{}, Turns: line.Turns - earlier.Turns}
	for unit, amount := range line.Cost {
		since.Cost[unit] = amount - earlier.Cost[unit]
	}
	for meter, n := range line.Tokens {
		since.Tokens[meter] = n - earlier.Tokens[meter]
	}
	return since
}

// compare compares what turns have used with the requests after the first n. The prices of Claude
// Code's models are its own, so its turns are compared with what one has cost before, unless that
// is 0: each sends the whole conversation.
func (s *stage) compare(t *testing.T, line costLine, n, turns int, each float64) {
	t.Helper()
	input, output := s.usedSince(n)
	require.Equal(t, turns, line.Turns)
	if s.subject.name == opencode.name {
		require.InDelta(t, (input*priceIn+output*priceOut)/1e6, inDollars(line), 1e-6)
		return
	}
	require.InDelta(t, input, line.Tokens["input"]+line.Tokens["cachedRead"]+line.Tokens["cachedWrite"], 0)
	require.InDelta(t, output, line.Tokens["output"], 0)
	require.Positive(t, inDollars(line))
	if each > 0 {
		require.InDelta(t, each*float64(turns), inDollars(line), each*float64(turns)/2)
	}
}

// priceIn and priceOut are what a million tokens cost.
const priceIn, priceOut = 3, 15

// priced returns opencode with a model that has prices.
func priced(s subject) subject {
	s.files = maps.Clone(s.files)
	const file = ".config/opencode/opencode.json"
	s.files[file] = strings.Replace(s.files[file], `"tool_call": true,`,
		fmt.Sprintf(`"tool_call": true, "cost": {"input": %d, "output": %d},`, priceIn, priceOut), 1)
	return s
}
