package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// answer makes the editor choose options of this kind from now on, and forget what it was asked.
func (e *editor) answer(kind sdk.PermissionOptionKind) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.chooses, e.asked = kind, nil
}

// questions returns how often the editor was asked since it was told what to answer.
func (e *editor) questions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

// ruled prepares a stage whose agent asks before it runs commands, in a folder with a Makefile, a
// link to the outside, and acp-agent's configuration.
func ruled(t *testing.T, s subject, permissions string) (st *stage, outside, config string) {
	t.Helper()
	needs.Programs(t, "make")
	st = onStage(t, s)
	outside = folder(t, "banana\n")
	for name, text := range map[string]string{
		"Makefile": "check:\n\t@echo checked\n", "opencode.json": `{"permission":{"edit":"ask","bash":"ask"}}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(st.cwd, name), []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink(fruit(outside), filepath.Join(st.cwd, "link.txt")))
	config = filepath.Join(st.home, "rules.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"permissions":`+permissions+`}`), 0o600))
	return st, outside, config
}

// hasNoRulesOfItsOwn checks that an agent has written no settings.
func (s *stage) hasNoRulesOfItsOwn(t *testing.T) {
	t.Helper()
	require.NoFileExists(t, filepath.Join(s.cwd, ".claude", "settings.local.json"))
	for name, text := range s.subject.files {
		now, err := os.ReadFile(filepath.Join(s.home, name))
		require.NoError(t, err)
		var before, after map[string]any
		if json.Unmarshal(now, &after) == nil && json.Unmarshal([]byte(text), &before) == nil {
			require.Equal(t, before["permissions"], after["permissions"], name)
			require.Equal(t, before["permission"], after["permission"], name)
		}
	}
}

// Rules decide about what real agents ask, and about nothing more than they say.
//
// Clause R2.
func TestRulesHoldForAgents(t *testing.T) {
	for _, subject := range []subject{claude, opencode} {
		t.Run(subject.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, subject)
			s, outside, config := ruled(t, subject, `{"allow":["run make check ...","edit"],"deny":["run touch denied"]}`)
			e := s.behind(t, noFiles, "--config", config)
			made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t)})
			require.NoError(t, err)
			e.answer(sdk.PermissionOptionKindRejectOnce)

			s.prompt(e, made.ID, "Check.", modelserver.Run("make check"), modelserver.Say("Done."))
			require.Zero(t, e.questions(), e.permissions())
			require.Contains(t, e.heard(made.ID), "checked")
			require.Contains(t, e.heard(made.ID), "(allowed by the rule `run make check ...`)")

			_, err = e.Prompt(within(t), made.ID, sdk.TextBlock(modelserver.Prompt("Check.", modelserver.Run("make check; touch made"), modelserver.Say("Done."))))
			require.NoError(t, err)
			require.NotZero(t, e.questions())
			require.NoFileExists(t, filepath.Join(s.cwd, "made"))

			e.answer(sdk.PermissionOptionKindAllowOnce)
			_, err = e.Prompt(within(t), made.ID, sdk.TextBlock(modelserver.Prompt("Check.", modelserver.Run("make check; touch denied"), modelserver.Say("Done."))))
			require.NoError(t, err)
			require.Zero(t, e.questions(), e.permissions())
			require.NoFileExists(t, filepath.Join(s.cwd, "denied"))
			require.Contains(t, e.heard(made.ID), "(refused by the rule `run touch denied`)")

			e.answer(sdk.PermissionOptionKindRejectOnce)
			_, err = e.Prompt(within(t), made.ID, sdk.TextBlock(modelserver.Prompt("Mend it.", modelserver.Read(fruit(s.cwd)),
				modelserver.Edit(fruit(s.cwd), "apple", "cherry"), modelserver.Say("Done."))))
			require.NoError(t, err)
			require.Zero(t, e.questions(), e.permissions())
			require.Equal(t, "cherry\n", content(t, s.cwd))

			link := filepath.Join(s.cwd, "link.txt")
			_, err = e.Prompt(within(t), made.ID, sdk.TextBlock(modelserver.Prompt("And that.", modelserver.Read(link),
				modelserver.Edit(link, "banana", "cherry"), modelserver.Say("Done."))))
			require.NoError(t, err)
			require.NotZero(t, e.questions(), "the link leads outside")
			require.Equal(t, "banana\n", content(t, outside))
			s.hasNoRulesOfItsOwn(t)
		})
	}
}

// "Always" is a rule of acp-agent: another agent in this folder need not ask again until it is
// revoked, and neither agent has written anything down.
//
// Clause R3.
func TestAlwaysHoldsForAllAgents(t *testing.T) {
	if !*survey {
		t.Skip("runs agents for minutes: make interop-agents")
	}
	t.Parallel()
	first, _, config := ruled(t, claude, `{}`)
	e := first.behind(t, noFiles, "--config", config)
	made, err := e.NewSession(within(t), client.Setup{Roots: first.roots(t)})
	require.NoError(t, err)
	e.answer(sdk.PermissionOptionKindAllowAlways)
	for range 2 {
		first.prompt(e, made.ID, "Check.", modelserver.Run("make check"), modelserver.Say("Done."))
	}
	require.Equal(t, 1, e.questions(), e.permissions())
	require.Contains(t, e.permissions(), "Always: run `make check ...` in sessions of "+filepath.Base(first.cwd))
	first.hasNoRulesOfItsOwn(t)

	second, _, _ := ruled(t, opencode, `{}`)
	second.state, second.cwd = first.state, first.cwd
	other := second.behind(t, noFiles, "--config", config)
	made, err = other.NewSession(within(t), client.Setup{Roots: second.roots(t)})
	require.NoError(t, err)
	other.answer(sdk.PermissionOptionKindAllowOnce)
	second.prompt(other, made.ID, "Check.", modelserver.Run("make check"), modelserver.Say("Done."))
	require.Zero(t, other.questions(), other.permissions())

	list, err := exec.Command(program.Path(), "permissions", "list", "--state-dir", first.state).Output()
	require.NoError(t, err)
	require.Contains(t, string(list), "run make check ...")
	require.NoError(t, exec.Command(program.Path(), "permissions", "revoke", "--all", "--state-dir", first.state).Run())
	second.prompt(other, made.ID, "Check.", modelserver.Run("make check"), modelserver.Say("Done."))
	require.Equal(t, 1, other.questions(), "it was revoked")
	second.hasNoRulesOfItsOwn(t)
}
