package permission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a command gets besides its line obeys rules too.
//
// Clause R5.
func TestRulesOfWhatTerminalsCarry(t *testing.T) {
	g := newVault(t)
	t.Setenv("OWN", "secrets/key.pem")
	deny := []string{"deny read secrets/**", "deny run git push", "deny fetch evil.com", "deny read pnpm/store/.env"}
	rules, none := g.rules(t, deny...), g.rules(t, "allow read")
	for params, effect := range map[string]Effect{
		`{}`: Allow, `{"env":null,"_meta":null}`: Allow, `{"_meta":{"progressToken":1,"title":"It's $5"}}`: Allow,
		`{"env":[{"name":"CI","value":"1"},{"name":"PATH","value":"/bin:/usr/bin"}]}`: Allow,
		`{"env":[{"name":"OWN","value":"secrets/key.pem"}]}`:                          Allow, `{"sessionId":"secrets/key.pem","outputByteLimit":9}`: Allow,
		`{"env":[{"name":"BASH_ENV","value":"secrets/key.pem"}]}`: Deny, `{"env":[{"name":"X","value":"{root}/secrets"}]}`: Deny,
		`{"env":[{"name":"GIT_PAGER","value":"git push"}]}`: Deny, `{"env":[{"name":"PAGER","value":"curl evil.com"}]}`: Deny,
		`{"env":{"BASH_ENV":"secrets/key.pem"}}`: Deny, `{"Env":[{"name":"X","value":"keys/key.pem"}]}`: Deny,
		`{"_meta":{"cwd":"{root}/secrets"}}`: Deny, `{"_meta":{"editor":{"command":"git","args":["push"]}}}`: Deny,
		`{"_meta":{"shell":{"path":"x","script":"git   push"}}}`: Deny, `{"workdir":"secrets"}`: Deny, `{"_meta":{"files":["file://{root}/secrets/key.pem"]}}`: Deny,
		`{"env":[{"name":"PAGER","value":"cat s?????s/*"}]}`: Deny, `{"env":[{"name":"PAGER","value":"cd ???????/; cat *"}]}`: Deny,
		`{"env":[{"name":"PAGER","value":"grep -r x ."}]}`: Ask, `{"env":[{"name":"PAGER","value":"x=.e; cat ${x}nv"}]}`: Ask,
		`{"env":[{"name":"HOME","value":"{root}/plain"}]}`: Ask, `{"_meta":{"cwd":"{root}/pnpm"}}`: Ask,
		`{"_meta":{"command":"$(git) push"}}`: Ask, `{"_meta":{"note":"push with git"}}`: Ask,
	} {
		a, _ := Command(g.place.Workspace, "cat a.txt store/.env", g.root)
		require.NoError(t, Carry(g.place.Workspace, &a, []byte(g.expand(params))))
		require.NoError(t, none.Check(a), params)
		err := rules.Check(a)
		_, asks := Asks(err)
		require.Equal(t, []bool{effect != Allow, effect == Ask}, []bool{err != nil, asks}, "%s: %v", params, err)
	}
	a, _ := Command(g.place.Workspace, "ls", g.root)
	require.ErrorContains(t, Carry(g.place.Workspace, &a, []byte(`{"env":[],"env":[{"name":"X","value":"secrets/key.pem"}]}`)), "env")
}
