package serve

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
)

func TestAuditSaysWhatUsersDid(t *testing.T) {
	long := strings.Repeat("x", 10*maxAudited)
	for name, test := range map[string]struct {
		event acp.Event
		want  string // "" if the audit log does not have it
	}{
		"opened":  {acp.OpenEvent{Session: "s"}, `"msg":"opened a session","session":"s"`},
		"failed":  {acp.RequestEvent{Method: "session/load", Session: "s", Err: errors.New("denied")}, `"msg":"could not open a session","method":"session/load","session":"s","error":"denied"`},
		"loaded":  {acp.RequestEvent{Method: "session/load", Session: "s"}, ""},
		"deleted": {acp.RequestEvent{Method: "session/delete", Session: "s", Did: "asked to delete a session"}, `"msg":"asked to delete a session","session":"s"`},
		"kept":    {acp.RequestEvent{Method: "session/delete", Session: "s", Err: errors.New("no")}, ""},
		"asked":   {acp.RequestEvent{Method: "session/prompt", Session: "s", Duration: time.Second}, `"msg":"sent a prompt","session":"s","seconds":1,"result":"ok"`},
		"renamed": {acp.RequestEvent{Method: "session/set_title", Session: "s", Did: "renamed a session"}, `"msg":"renamed a session","session":"s"`},
		"signed":  {acp.RequestEvent{Method: "logout", Did: "signed the agent out"}, `"msg":"signed the agent out"`},
		"listed":  {acp.RequestEvent{Method: "session/list"}, ""},
		"allowed": {acp.AnswerEvent{Session: "s", Title: "Delete a", Choice: "allow_once"}, `"title":"Delete a","answer":"allow_once"`},
		"late":    {acp.AnswerEvent{Session: "s", Title: "Delete a", Choice: "allow_once", Late: true}, "too late, without effect"},
		"unknown": {acp.AnswerEvent{Session: "s", Choice: long}, `"answer":"other"`},
		"refused": {acp.RefusedEvent{Session: "s", Method: long}, `"msg":"refused a message to the agent"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out logtest.Text
			audit(slog.New(slog.NewJSONHandler(&out, nil)), test.event)
			require.Contains(t, out.String(), test.want)
			require.Equal(t, test.want == "", out.String() == "", out.String())
			require.Less(t, len(out.String()), 2*maxAudited)
		})
	}
}
