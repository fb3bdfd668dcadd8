package commandline

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

// TestPolicyCorpus runs known ways around rules for commands against real programs: none is
// understood. A line begins with ">" if it really reads or changes something outside with the
// programs of this machine, which is proven.
//
// Clause R2.
func TestPolicyCorpus(t *testing.T) {
	for class, lines := range tabletest.Read(t, "attacks.txt") {
		t.Run(class, func(t *testing.T) {
			common := newGround(t)
			for _, line := range lines {
				line, works := strings.CutPrefix(line, ">")
				_, err := Understand(common.ws, common.root, common.line(line))
				require.Error(t, err, "%q", line)
				words := strings.Fields(line) // the first may set a variable
				if !works || !slices.ContainsFunc(words[:min(2, len(words))], has) {
					continue
				}
				p := newGround(t)
				output, marked := p.run(p.root, p.line(line))
				assert.True(t, marked || strings.Contains(output, "1234") || strings.Contains(output, "secret.txt"),
					"%q does nothing outside here: %s", line, output)
			}
		})
	}
}

// What is harmless is understood, with the words of its rule.
//
// Clause R2.
func TestHarmless(t *testing.T) {
	p := newGround(t)
	for rule, lines := range tabletest.Read(t, "harmless.txt") {
		for _, line := range lines {
			line = p.line(line)
			c, err := Understand(p.ws, p.root, line)
			if rule == "not understood" {
				require.Error(t, err, line)
				continue
			}
			require.NoError(t, err, line)
			require.Equal(t, rule, strings.Join(c.Rule, " "))
			require.True(t, isRule(c.Rule))
			program := c.Rule[0]
			if slices.Contains([]string{"go", "npm", "cargo", "bazel", "pytest"}, program) || !has(program) {
				continue // it takes long, or runs what the folder says
			}
			output, marked := p.run(p.root, line, c.Env...)
			require.False(t, marked, line)
			require.NotContains(t, output, "1234", line)
			for _, complaint := range []string{"nknown option", "nrecognized", "usage:", "not a git repository", "nvalid option"} {
				require.NotContains(t, output, complaint, line)
			}
		}
	}
}
