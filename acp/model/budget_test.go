package model

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/llm"
)

func TestCutResults(t *testing.T) {
	model := llm.New(llm.Model{API: llm.OpenAI, ContextTokens: 20_000}).Model()
	var c lockedConversation
	c.known.add(llm.User, llm.Text("Hi"))
	add := func(n, size int) {
		id := fmt.Sprint(n)
		c.known.add(llm.Assistant, llm.ToolCall{ID: id, Name: "read_file", Arguments: "{}"})
		c.known.add(llm.User, llm.ToolResult{ID: id, Content: []llm.Part{llm.Text(strings.Repeat("x",
			size))}})
	}
	cut, first := 0, ""
	changes := 0
	for n := range 100 {
		add(n, 2000)
		r, tokens := c.request(llm.Request{}, model, room(model)/6)
		require.Less(t, tokens, room(model)*9/10)
		if first != fmt.Sprint(r.Messages[:cut]) {
			changes++
		}
		cut, first = len(r.Messages), fmt.Sprint(r.Messages)
	}
	require.Less(t, changes, 15, "the beginning seldom changes, so that servers can cache it")
	require.Len(t, c.known.messages, 201)

	var parallel lockedConversation
	parallel.known.add(llm.User, llm.Text(strings.Repeat("x", 50_000)))
	for n := range 10 {
		parallel.known.add(llm.User, llm.ToolResult{ID: fmt.Sprint(n),
			Content: []llm.Part{llm.Text(strings.Repeat("x", 2000))}})
	}
	r, _ := parallel.request(llm.Request{}, model, room(model)/6)
	require.True(t, reflect.DeepEqual(parallel.known.messages, r.Messages),
		"the model has seen none of them")
}

// A model can have far more read in a turn than it can be sent.
func TestCutResultsAreFreed(t *testing.T) {
	model := llm.New(llm.Model{API: llm.OpenAI, ContextTokens: 20_000}).Model()
	var c lockedConversation
	c.known.add(llm.User, llm.Text("Hi"))
	for n := range 100 {
		id := fmt.Sprint(n)
		c.known.add(llm.Assistant, llm.ToolCall{ID: id, Name: "read_file", Arguments: "{}"})
		c.known.add(llm.User, llm.ToolResult{ID: id, Content: []llm.Part{llm.Text(strings.Repeat("x",
			10_000)), llm.Media{Data: make([]byte, 10_000)}}})
		c.request(llm.Request{}, model, room(model)/6)
	}
	kept := len(fmt.Sprint(c.known.messages, c.known.budget.excerpts))
	require.Less(t, kept, 100*(maxTranscribed+500)+10*100_000)
	require.Greater(t, kept, 80*maxTranscribed, "a summary is made of it")
	r, _ := c.request(llm.Request{}, model, room(model)/6)
	require.Contains(t, fmt.Sprint(r.Messages[2]), leftOut)
}

// What the server counts replaces the estimate, unless it cannot be right.
func TestCountedTokens(t *testing.T) {
	model := llm.New(llm.Model{API: llm.OpenAI}).Model()
	var c lockedConversation
	c.known.add(llm.User, llm.Text(strings.Repeat("x", 4000)))
	_, tokens := c.request(llm.Request{}, model, room(model)/6)
	require.InDelta(t, 1000, tokens, 10)
	c.count(2000)
	c.known.add(llm.Assistant, llm.Text(strings.Repeat("x", 400)))
	_, tokens = c.request(llm.Request{}, model, room(model)/6)
	require.InDelta(t, 2100, tokens, 10)
	c.count(1)
	_, tokens = c.request(llm.Request{}, model, room(model)/6)
	require.InDelta(t, 2100, tokens, 10)
}
