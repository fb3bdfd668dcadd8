package permission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules that were written for a folder hold for the same files in a session below it.
//
// Clause R5.
func TestRulesBelow(t *testing.T) {
	for _, c := range []struct {
		folder, rule string
		also         []string
	}{
		{"config", "read config/prod.env", []string{"read prod.env"}},
		{"Config/", "read config/prod.env", []string{"read prod.env"}},
		{"config/x", "read config/prod.env", nil},
		{"a/b", "edit a/*/c/**", []string{"edit c/**"}},
		{"secrets", "read secrets", []string{"read **"}},
		{"secrets/deep/er", "read secrets", []string{"read **"}},
		{"secrets/deep", "read secrets/**", []string{"read **"}},
		{"app/keys", "read **/keys", []string{"read **/keys", "read **"}},
		{"x", "read **/.env", nil},
		{"x.d", "read *.d", nil},
		{"a/x/b", "read a/**/b/c", []string{"read **/b/c", "read c"}},
		{"other", "read secrets/**", nil},
		{".", "read secrets/**", nil},
		{".", "read */x", nil},
		{"git", "run git push", nil},
		{"x", "read", nil},
	} {
		want := []string{c.rule}
		for _, one := range c.also {
			if one != c.rule {
				want = append(want, one)
			}
		}
		got := Permissions{Deny: []string{c.rule}, Ask: []string{c.rule}, Allow: []string{"read"}}.Below(c.folder)
		require.Equal(t, Permissions{Deny: want, Ask: want}, got, "%s in %s", c.rule, c.folder)
	}
}
