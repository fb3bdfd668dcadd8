package runner

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/terminal"
)

// Without a terminal nobody is asked, and only what the agent offers for once is answered.
func TestPermissionsWithoutATerminal(t *testing.T) {
	once := sdk.PermissionOption{OptionId: "once", Kind: sdk.PermissionOptionKindAllowOnce, Name: "Yes"}
	always := sdk.PermissionOption{OptionId: "always", Kind: sdk.PermissionOptionKindAllowAlways}
	reject := sdk.PermissionOption{OptionId: "no", Kind: sdk.PermissionOptionKindRejectOnce}
	var out strings.Builder
	show := terminal.NewPrinter(&out)
	for name, c := range map[string]struct {
		permit  *Permissions
		options []sdk.PermissionOption
		want    string // the chosen option, "" for none
		refused bool
	}{
		"allowed":         {&Permissions{Show: show, Yes: true}, []sdk.PermissionOption{always, once, reject}, "once", false},
		"refused":         {&Permissions{Show: show}, []sdk.PermissionOption{once, reject}, "no", true},
		"only for good":   {&Permissions{Show: show, Yes: true}, []sdk.PermissionOption{always}, "", true},
		"nothing offered": {&Permissions{Show: show}, nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			title := "Write f"
			answer, err := c.permit.Answer(t.Context(), sdk.RequestPermissionRequest{
				ToolCall: sdk.ToolCallUpdate{Title: &title}, Options: c.options,
			})
			require.NoError(t, err)
			if c.want == "" {
				require.NotNil(t, answer.Outcome.Cancelled)
			} else {
				require.EqualValues(t, c.want, answer.Outcome.Selected.OptionId)
			}
			require.Equal(t, c.refused, c.permit.Err() != nil)
		})
	}
	p := &Permissions{Show: show}
	p.Note(json.RawMessage(`{"title":"Run x"}`))
	require.NoError(t, p.Err())
	p.Note(json.RawMessage(`{"title":"Run x (refused by the rule ` + "`run x`" + `)"}`))
	require.ErrorContains(t, p.Err(), "refused because of a deny rule: run x")
	rule := sdk.PermissionOption{OptionId: "rule", Kind: sdk.PermissionOptionKindAllowAlways,
		Meta: map[string]any{"acp-agent": map[string]any{"rule": "run go test ..."}}}
	_, err := p.Answer(t.Context(), sdk.RequestPermissionRequest{Options: []sdk.PermissionOption{once, rule, reject}})
	require.NoError(t, err)
	require.ErrorContains(t, p.Err(), "1 request for permission was refused; run it on a terminal to be asked, "+
		"or with --yes to allow each once; this would allow it: --allow 'run go test ...'")
	require.Contains(t, out.String(), "? Write f\n  (refused; use --yes to allow it)\n")
}
