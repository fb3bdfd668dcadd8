package permission

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

// What a command gets besides its line obeys rules too.
//
// Clause R5.
func TestRulesOfWhatTerminalsCarry(t *testing.T) {
	g := newVault(t)
	t.Setenv("OWN", "secrets/key.pem")
	deny := []string{"deny read secrets/**", "deny run git push", "deny fetch evil.com", "deny read pnpm/store/.env"}
	rules, none := g.rules(t, deny...), g.rules(t, "allow read")
	for want, all := range tabletest.Read(t, "terminals.txt") {
		for _, params := range all {
			a, _ := g.place.Command("cat a.txt store/.env", g.root)
			require.NoError(t, g.place.Carry(&a, []byte(g.expand(params))))
			require.NoError(t, none.Check(a), params)
			err := rules.Check(a)
			_, asks := Asks(err)
			require.Equal(t, []bool{Effect(want) != Allow, Effect(want) == Ask}, []bool{err != nil, asks}, "%s: %v", params, err)
		}
	}
	a, _ := g.place.Command("ls", g.root)
	require.ErrorContains(t, g.place.Carry(&a, []byte(`{"env":[],"env":[{"name":"X","value":"secrets/key.pem"}]}`)), "env")
}
