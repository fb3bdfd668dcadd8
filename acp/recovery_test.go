package acp_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestS4_ASessionGoesOnWhenTheStoreCanBeUsedAgain(t *testing.T) {
	store := &hooked{Memory: sessionstore.NewMemory()}
	c := connect(t, acp.Options{Store: store})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one")
	store.appending = &sessionstore.UnavailableError{Path: "/state/sessions.db", Hint: "free some space", Err: errors.New("disk full")}
	require.Equal(t, "store_unavailable", c.try("session/prompt", promptParams(id, "say two")).reason(t))
	for _, text := range []string{"three", "four"} {
		require.Equal(t, []string{text}, c.texts(id, "say "+text), "there is space again")
	}
	before := len(texts(c.messages(), id))
	c.call("session/load", rootsParams(id, a))
	require.Equal(t, []string{"one", "three", "four"}, texts(c.messages(), id)[before:])
}

func TestA29_ATitleThatTheRuntimeGaveIsNotReplacedByThePrompts(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) { host = h }
	id := c.open(folder(t))
	require.NoError(t, host.Update(t.Context(), backend.Update(`{"update":{"sessionUpdate":"session_info_update","title":"Given"}}`)))
	c.texts(id, "say x")
	require.Equal(t, "Given", c.find(id).Title)
	require.NotContains(t, encode(c.messages()), `"title":"say x"`, "the client is shown what is stored")
}
