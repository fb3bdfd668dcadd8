package acp

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replay shows the client a loaded session's conversation before the response (A27): the stored history,
// unless the runtime has sent its own, then the states as they are now.
func (a *agent) replay(ctx context.Context, s *session, opened backend.Opened, p *pace) error {
	if opened.Replay == backend.FromStore {
		if err := a.replayHistory(ctx, s, p); err != nil {
			return err
		}
	}
	states, err := a.options.Store.States(ctx, s.id)
	if err != nil {
		return asWire(err)
	}
	said := s.host.heldKinds()
	result := members(opened.Result)
	for _, u := range states {
		kind := updateKind(u)
		if said[kind] || len(result[statedBy(kind)]) > 0 {
			continue
		}
		if err := s.show(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// statedBy is the member of a lifecycle response that says what a state kind says.
func statedBy(kind string) string {
	switch kind {
	case "current_mode_update":
		return "modes"
	case "config_option_update":
		return "configOptions"
	}
	return ""
}

// replayHistory sends the stored history, and closes the tool calls that it leaves open.
func (a *agent) replayHistory(ctx context.Context, s *session, p *pace) error {
	open := openCalls{}
	for u, err := range sessionstore.Joined(a.options.Store.History(ctx, s.id)) {
		if err != nil {
			return asWire(err)
		}
		open.see(u)
		p.wait(ctx)
		if err := s.show(ctx, u); err != nil {
			return err
		}
	}
	for _, u := range open.failures() {
		p.wait(ctx)
		if err := s.show(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// openCalls are the tool calls of a history that have not ended, by id, in order.
type openCalls struct {
	order []string
	open  map[string]bool
}

// see takes note of an update.
func (o *openCalls) see(u sessionstore.Update) {
	if isChunk(u) || !bytes.Contains(u, []byte("tool_call")) {
		return // most updates, which need not be read
	}
	kind := updateKind(u)
	if kind != "tool_call" && kind != "tool_call_update" {
		return
	}
	var call struct {
		Update struct {
			ID     string `json:"toolCallId"`
			Status string `json:"status"`
		} `json:"update"`
	}
	if json.Unmarshal(u, &call) != nil {
		return
	}
	id, status := call.Update.ID, call.Update.Status
	switch {
	case status == "completed" || status == "failed":
		delete(o.open, id)
	case kind == "tool_call" || status != "":
		if o.open == nil {
			o.open = make(map[string]bool)
		}
		if !o.open[id] {
			o.open[id] = true
			o.order = append(o.order, id)
		}
	}
}

// chunkStart is how most updates begin.
var chunkStart = []byte(`{"update":{"sessionUpdate":"agent_message_chunk","`)

// isChunk reports whether an update is seen from its start to be a piece of a message.
func isChunk(u sessionstore.Update) bool { return bytes.HasPrefix(u, chunkStart) }

// failures are updates that end the open calls (A27).
func (o *openCalls) failures() []backend.Update {
	var updates []backend.Update
	for _, id := range o.order {
		if o.open[id] {
			delete(o.open, id)
			updates = append(updates, backend.Update(`{"update":{"sessionUpdate":"tool_call_update","toolCallId":`+string(quote(id))+`,"status":"failed"}}`))
		}
	}
	return updates
}

// updateKind is the kind of an update, "" if it has none.
func updateKind(u backend.Update) string {
	object, err := strictjson.ParseObject(u)
	if err != nil {
		return ""
	}
	raw, _ := object.Get("update")
	inner, err := strictjson.ParseObject(raw)
	if err != nil {
		return ""
	}
	kind, _ := inner.Get("sessionUpdate")
	var name string
	if json.Unmarshal(kind, &name) != nil {
		return ""
	}
	return name
}
