package proxy

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

func TestTry(t *testing.T) {
	busy := &jsonrpc.Error{Message: "busy"}
	said := map[string]trial{
		"unknown": {err: &jsonrpc.Error{Code: protocol.CodeNotFound}},
		"login":   {err: &jsonrpc.Error{Code: protocol.CodeAuthRequired}},
		"lost":    {err: errors.New("the agent ended")},
		"shown":   {err: busy, passedOn: 1},
	}
	saved := state{ID: backend.Raw(`"c1"`)}
	replaces := state{ID: backend.Raw(`"c2"`), Earlier: &saved}
	keeps := state{ID: backend.Raw(`"c1"`), Granted: []string{"a folder"}}
	for name, c := range map[string]struct {
		saved   state
		request string // its cause, and "must" if the session must exist
		child   string // what it can do, and "tools" if it is given our tool server
		answers string // to the first trials; the child rejects the others
		want    string
		earlier string // what is tried first the next time, if the last trial succeeds
	}{
		"new":                   {state{}, "new", "load resume fork", "", "new", ""},
		"another agent's":       {state{From: "x"}, "load", "load", "", "new", ""},
		"load":                  {saved, "load", "load resume", "", "load c1, new", "c1"},
		"load by resume":        {saved, "load", "resume", "", "resume c1, new", "c1"},
		"load by neither":       {saved, "load", "fork", "", "new", ""},
		"resume":                {saved, "resume", "load resume", "", "resume c1, new", "c1"},
		"resume by load":        {saved, "resume", "load", "", "load c1, new", "c1"},
		"must exist":            {saved, "load must", "load", "", "load c1", ""},
		"must exist, resume":    {saved, "resume must", "load resume", "", "load c1, resume c1", "c1"},
		"must exist, no way":    {saved, "load must", "", "", "", ""},
		"fork":                  {saved, "fork", "load fork", "", "fork c1, new", ""},
		"fork by new":           {saved, "fork", "load resume", "", "new", ""},
		"unknown":               {saved, "load", "load", "unknown", "load c1, new", ""},
		"keeps a folder":        {keeps, "load", "load fork", "", "fork c1, new", ""},
		"keeps it, no fork":     {keeps, "resume", "load resume", "", "new", ""},
		"earlier":               {replaces, "load", "load resume", "", "load c1, load c2, new", "c1"},
		"earlier is unknown":    {replaces, "load", "load", "unknown", "load c1, load c2, new", "c2"},
		"both are unknown":      {replaces, "load", "load", "unknown unknown", "load c1, load c2, new", ""},
		"earlier without a way": {replaces, "load", "fork", "", "new", "c1"},
		"fork, not earlier":     {replaces, "fork", "load fork", "", "fork c2, new", ""},
		"login":                 {saved, "load", "load", "login", "load c1", ""},
		"lost":                  {saved, "load", "load", "lost", "load c1", ""},
		"in the middle":         {saved, "load", "load", "shown", "load c1", ""},
		"tools": {saved, "load", "load tools", "",
			"load c1, load c1 without tools, new, new without tools", "c1"},
		"tools, unknown": {saved, "load", "load tools", "unknown",
			"load c1, new, new without tools", ""},
		"tools were taken": {state{ID: saved.ID, SentTools: true}, "load", "load tools", "",
			"load c1, new, new without tools", "c1"},
		"tools were refused": {state{ID: saved.ID, RefusesTools: true}, "load", "load tools", "",
			"load c1 without tools, new without tools", "c1"},
	} {
		cause, must := strings.CutSuffix(c.request, " must")
		can := func(what string) bool { return strings.Contains(c.child, what) }
		p := plan{saved: c.saved, tools: can("tools"),
			asked: backend.Activation{Cause: backend.Cause("session/" + cause), MustExist: must},
			agent: client.Agent{Load: can("load"), Resume: can("resume"), Fork: can("fork")}}
		var made []string
		answers := strings.Fields(c.answers)
		trials := p.try(func(t trial) trial {
			asked := strings.TrimPrefix(string(t.method), "session/") + " " + t.target.key()
			if asked = strings.TrimSpace(asked); t.target.RefusesTools {
				asked += " without tools"
			}
			ended := trial{err: busy}
			if n := len(made); n < len(answers) {
				ended = said[answers[n]]
			}
			made = append(made, asked)
			ended.method, ended.target = t.method, t.target
			return ended
		})
		require.Equal(t, c.want, strings.Join(made, ", "), name)
		earlier := ""
		if e := p.earlierAfter(trials[:max(0, len(trials)-1)]); e != nil {
			earlier = e.key()
		}
		require.Equal(t, c.earlier, earlier, name)
	}
}

func TestSaysUnknown(t *testing.T) {
	for _, c := range []struct {
		code    int
		message string
		unknown bool
	}{
		{-32603, "session c1 is already open elsewhere", false},
		{-32603, "read tcp: connection reset by peer", false},
		{529, "overloaded", false},
		{-32603, "the session's model was not found", false},
		{-32001, "session store: database is locked", false},
		{-32002, "Resource not found", true},
		{-32603, "Session not found: c1", true},
		{-32602, "No conversation found with session ID: c1", true},
		{-32603, "session 'c1' does not exist", true},
		{-32603, "no rollout found for conversation id c1", true},
	} {
		err := &jsonrpc.Error{Code: c.code, Message: c.message}
		require.Equal(t, c.unknown, saysUnknown(err), c.message)
	}
}
