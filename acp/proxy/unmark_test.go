package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/proxy"
)

func TestP7_WhatTheAgentWasToldIsTakenOutWhereverItComesBack(t *testing.T) {
	const told = `\u003cacp-agent-context\u003e\nroots\n</acp-agent-context>`
	user := func(text string) string {
		return `{"sessionUpdate":"user_message_chunk","content":{"type":"text","n":1.0,"text":` + text + `}}`
	}
	for _, c := range []struct{ sent, want string }{
		{user(`"hello"`), user(`"hello"`)},
		{user(`"` + told + `"`), ""},
		{user(`"` + told + `\nhello"`), user(`"hello"`)},
		{user(`"before ` + told + ` and ` + told + ` behind"`), user(`"before  and  behind"`)},
		{user(`"In context.go, why is <acp-agent-context> there?"`), user(`"In context.go, why is <acp-agent-context> there?"`)},
		{user(`"` + told + `\nwhy is <acp-agent-context> there? "`), user(`"why is \u003cacp-agent-context\u003e there?"`)},
		{user(`"why is </acp-agent-context> there?"`), user(`"why is </acp-agent-context> there?"`)},
		{user(`"of acp-agent-context I know"`), user(`"of acp-agent-context I know"`)},
		{user(`7`), user(`7`)},
		{`{"sessionUpdate":"session_info_update","title":"<acp-agent-context> This session ha"}`, ""},
		{`{"sessionUpdate":"session_info_update","title":"Fix it <acp-agent-context> This session ha"}`, `{"sessionUpdate":"session_info_update","title":"Fix it"}`},
		{`{"sessionUpdate":"session_info_update","title":"` + told + ` Fix it"}`, `{"sessionUpdate":"session_info_update","title":"Fix it"}`},
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + told + `"}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + told + `"}}`},
	} {
		b := initialized(t, plain+opened+"await session/prompt\nsend "+fmt.Sprintf(update, c.sent)+"send "+fmt.Sprintf(update, `"end"`)+answered, proxy.Options{})
		s, _ := b.open()
		_, err := b.prompt(s)
		require.NoError(t, err)
		if c.want != "" {
			require.Equal(t, `turn update {"update":`+c.want+`}`, b.editor.next())
		}
		require.Equal(t, `turn update {"update":"end"}`, b.editor.next())
	}
}

// An agent can say whatever it likes: it must not cost more than it is long.
func TestP7_AnyNumberOfBlocksIsTakenOut(t *testing.T) {
	const blocks = 200_000
	text := strings.Repeat("<acp-agent-context>x</acp-agent-context>\ny", blocks)
	require.Equal(t, strings.Repeat("y", blocks), proxy.WithoutBlocks(" "+text+" "))
	open := strings.Repeat("<acp-agent-context>", blocks)
	require.Equal(t, open, proxy.WithoutBlocks(open))
	require.Equal(t, " plain ", proxy.WithoutBlocks(" plain "))
}
