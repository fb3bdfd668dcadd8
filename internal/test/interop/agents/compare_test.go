package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// compared has a file for each agent with what an editor sees of it, as a line each: "=" if the
// same is seen alone and behind the program, "+" if only behind it, "-" if only alone.
const compared = "testdata/compared"

// An editor that offers everything sees at least as much of an agent behind the program as of the
// agent alone.
func TestNothingIsLostBehind(t *testing.T) {
	t.Parallel()
	onlyInSurvey(t)
	for _, s := range surveyed {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			alone, behind := onStage(t, s), onStage(t, s)
			had := alone.watch(t, func() *editor { return alone.alone(t, withTerminals) })
			has := behind.watch(t, func() *editor { return behind.behind(t, withTerminals) })
			all := maps.Clone(had)
			maps.Copy(all, has)
			var text strings.Builder
			var lost []string
			for _, line := range slices.Sorted(maps.Keys(all)) {
				mark := map[[2]bool]string{{true, true}: "=", {false, true}: "+", {true, false}: "-"}
				fmt.Fprintf(&text, "%s %s\n", mark[[2]bool{had[line], has[line]}], line)
				if !has[line] {
					lost = append(lost, line)
				}
			}
			file := strings.NewReplacer(" ", "_", ",", "", "'", "").Replace(s.name) + ".txt"
			path := filepath.Join(compared, file)
			require.NoError(t, os.MkdirAll(compared, 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
			require.Empty(t, lost)
		})
	}
}

// watcher notes what an editor sees of an agent.
type watcher struct {
	*editor
	s    *stage
	seen map[string]bool
}

// watch uses everything that an agent may offer, and returns what was seen. open starts it.
func (s *stage) watch(t *testing.T, open func() *editor) map[string]bool {
	w := &watcher{editor: open(), s: s, seen: map[string]bool{}}
	w.note("initialize", w.agent.Raw)
	cwd := map[string]any{"cwd": s.cwd, "mcpServers": s.withServer(t).MCPServers}
	work := w.open("session/new", cwd)
	w.settings()
	w.turns(work)
	w.cancels()
	w.ask("_unknown/request", nil)
	if s.subject.method != "" {
		w.ask("authenticate", map[string]any{"methodId": s.subject.method})
	}
	w.lists("session/list", work)
	w.leave()

	w.editor = open()
	w.lists("another process: session/list", work)
	for _, way := range []struct {
		method string
		has    bool
	}{{"session/load", w.agent.Load}, {"session/resume", w.agent.Resume}, {"session/fork", w.agent.Fork}} {
		if !way.has {
			continue
		}
		method, params := way.method, maps.Clone(cwd)
		params["sessionId"] = work
		id := w.open(method, params)
		if id == "" {
			continue
		}
		if method == "session/load" {
			w.replay(w.heard(id))
		}
		before := len(s.model.Requests())
		w.prompt("after "+method, id, "Go on.", modelserver.Say("Gone on."))
		for _, r := range s.model.Requests()[before:] {
			if r.Asks() && strings.Contains(r.Text(), "It is all done.") {
				w.see("after %s the model knows the conversation", method)
			}
		}
	}
	if w.agent.Close && w.ask("session/close", map[string]any{"sessionId": work}) != nil {
		w.lists("after session/close", work)
	}
	if w.agent.Delete && w.ask("session/delete", map[string]any{"sessionId": work}) != nil {
		if !slices.Contains(w.listed(client.Query{}), work) {
			w.see("after session/delete it is not listed")
		}
	}
	w.leave()
	return w.seen
}

func (w *watcher) see(format string, args ...any) { w.seen[fmt.Sprintf(format, args...)] = true }

// ask sends a request, and notes its result.
func (w *watcher) ask(method string, params map[string]any) json.RawMessage {
	w.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	raw, err := json.Marshal(params)
	require.NoError(w.t, err)
	result, err := w.Call(within(w.t), method, raw)()
	if err != nil {
		w.t.Logf("%s: %v", method, err)
		return nil
	}
	w.see("%s succeeds", method)
	w.note(method, result)
	return result
}

// open opens a session, notes what it is announced with, and returns its id or "".
func (w *watcher) open(method string, params map[string]any) string {
	result := w.ask(method, params)
	if result == nil {
		return ""
	}
	var made struct{ SessionID string }
	require.NoError(w.t, json.Unmarshal(result, &made))
	if made.SessionID == "" {
		made.SessionID = params["sessionId"].(string)
	}
	w.s.announced(w.editor, made.SessionID)
	w.states(made.SessionID)
	return made.SessionID
}

// settings changes what can be chosen in a session. Codex does not go back to the first model.
func (w *watcher) settings() {
	var has struct {
		SessionID string
		Modes     struct {
			CurrentModeID  string
			AvailableModes []struct{ ID string }
		}
		ConfigOptions []struct {
			ID, CurrentValue string
			Options          []struct{ Value string }
		}
	}
	result := w.ask("session/new", map[string]any{"cwd": w.s.cwd, "mcpServers": []any{}})
	if err := json.Unmarshal(result, &has); err != nil {
		w.t.Logf("session/new: %v", err)
	}
	set := func(method, name, value string, more map[string]any) {
		more["sessionId"], more[name] = has.SessionID, value
		raw, err := json.Marshal(more)
		require.NoError(w.t, err)
		if _, err := w.Call(within(w.t), method, raw)(); err == nil {
			w.see("%s %v %s succeeds", method, more["configId"], value)
		}
	}
	for _, m := range has.Modes.AvailableModes {
		set("session/set_mode", "modeId", m.ID, map[string]any{})
	}
	for _, o := range has.ConfigOptions {
		for _, v := range o.Options[:min(3, len(o.Options))] { // goose has dozens of providers
			set("session/set_config_option", "value", v.Value, map[string]any{"configId": o.ID})
		}
		set("session/set_config_option", "value", o.CurrentValue, map[string]any{"configId": o.ID})
	}
	if has.Modes.CurrentModeID != "" {
		set("session/set_mode", "modeId", has.Modes.CurrentModeID, map[string]any{})
	}
}

// A picture of one pixel.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// turns runs turns with all kinds of content and tools.
func (w *watcher) turns(session string) {
	w.prompt("a turn", session, "Please do it all.", modelserver.Read(fruit(w.s.cwd)),
		modelserver.Edit(fruit(w.s.cwd), "apple", "banana"), modelserver.Run("echo ran"),
		modelserver.Use("list_allowed_directories", ""), modelserver.Say("It is all done."))
	for _, block := range []map[string]any{
		{"type": "image", "mimeType": "image/png", "data": picture},
		{"type": "resource_link", "name": "fruit.txt", "uri": "file://" + fruit(w.s.cwd)},
		{"type": "resource", "resource": map[string]any{
			"uri": "file://" + w.s.cwd + "/note.txt", "text": "A note on medlars.", "mimeType": "text/plain"}},
	} {
		what, before := fmt.Sprintf("a turn with %s", block["type"]), len(w.s.model.Requests())
		w.prompt(what, session, "Look at this.", modelserver.Say("Seen."), block)
		sign := map[any]string{"image": picture, "resource_link": "fruit.txt", "resource": "medlars"}[block["type"]]
		for _, r := range w.s.model.Requests()[before:] {
			if r.Asks() && strings.Contains(string(r.Body), sign) {
				w.see("%s: the model receives it", what)
			}
		}
	}
}

// cancels notes how a cancelled turn ends. Its order would be carried out again by a model that is
// told the conversation.
func (w *watcher) cancels() {
	session := w.open("session/new", map[string]any{"cwd": w.s.cwd, "mcpServers": []any{}})
	cancelled := w.startPrompt(session, "Take your time.", modelserver.Wait())
	require.NoError(w.t, w.s.model.Waiting(within(w.t)))
	require.NoError(w.t, w.Cancel(within(w.t), session))
	if end, err := cancelled(); err == nil {
		w.see("a cancelled turn: %s", end)
	}
}

// prompt runs a turn and notes what is seen of it. A part is an order or a block of content.
func (w *watcher) prompt(what, session, words string, parts ...any) {
	var orders []modelserver.Order
	var blocks []any
	for _, part := range parts {
		if order, ok := part.(modelserver.Order); ok {
			orders = append(orders, order)
		} else {
			blocks = append(blocks, part)
		}
	}
	text := map[string]any{"type": "text", "text": modelserver.Prompt(words, orders...)}
	params, err := json.Marshal(map[string]any{"sessionId": session, "prompt": append([]any{text}, blocks...)})
	require.NoError(w.t, err)
	lines, asked, terminals := len(strings.Split(w.heard(session), "\n")), w.count(), len(w.terminals.Asked())
	result, err := w.Call(within(w.t), "session/prompt", params)()
	if err != nil {
		w.t.Logf("%s: %v", what, err)
		return
	}
	w.note(what+": result", result)
	time.Sleep(500 * time.Millisecond) // some report titles and the use of tokens late
	w.sees(what, session, lines-1)
	after := w.count()
	for i, name := range []string{"asks for permission", "reads through the editor", "writes through the editor"} {
		if after[i] > asked[i] {
			w.see("%s: %s", what, name)
		}
	}
	if len(w.terminals.Asked()) > terminals {
		w.see("%s: runs commands in the editor", what)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.asked[asked[0]:] {
		raw, err := json.Marshal(r)
		require.NoError(w.t, err)
		w.note(what+": session/request_permission", raw)
	}
}

// count returns the numbers of questions, and of files read and written.
func (w *watcher) count() [3]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return [3]int{len(w.asked), len(w.read), len(w.written)}
}

// isState reports whether an update says what holds from now on. Agents send such updates at any
// time.
func isState(kind string) bool {
	return slices.Contains([]string{"available_commands_update", "current_mode_update", "config_option_update",
		"session_info_update", "usage_update"}, kind)
}

// sees notes a session's updates after the first ones, except states.
func (w *watcher) sees(what, session string, after int) {
	for _, line := range strings.Split(w.heard(session), "\n")[after:] {
		if line != "" && !isState(kindOf(line)) {
			w.note(what+": session/update", json.RawMessage(line))
		}
	}
	w.states(session)
}

// states notes all states of a session so far.
func (w *watcher) states(session string) {
	for line := range strings.Lines(w.heard(session)) {
		if isState(kindOf(line)) {
			w.note("state", json.RawMessage(line))
		}
	}
}

func kindOf(update string) string {
	var u struct{ SessionUpdate string }
	_ = json.Unmarshal([]byte(update), &u)
	return u.SessionUpdate
}

// replay notes what a replay shows. Its updates are those of the record, to which agents add
// members in replays of their own.
func (w *watcher) replay(updates string) {
	for _, text := range []string{"Please do it all.", "It is all done.", "banana", "echo ran"} {
		if strings.Contains(updates, text) {
			w.see("session/load shows %q", text)
		}
	}
	for line := range strings.Lines(updates) {
		var u struct{ SessionUpdate, Kind string }
		require.NoError(w.t, json.Unmarshal([]byte(line), &u))
		if !isState(u.SessionUpdate) {
			w.see("session/load shows %s", strings.TrimSpace(u.SessionUpdate+" "+u.Kind))
		}
	}
}

// lists notes whether and how a session is listed.
func (w *watcher) lists(what, session string) {
	raw, err := w.Call(within(w.t), "session/list", json.RawMessage(`{}`))()
	if err != nil {
		return
	}
	var list struct{ Sessions []json.RawMessage }
	require.NoError(w.t, json.Unmarshal(raw, &list))
	for _, listed := range list.Sessions {
		if strings.Contains(string(listed), `"`+session+`"`) {
			w.see("%s has the session", what)
			w.note(what, listed)
		}
	}
}

// note notes the members of a JSON value, without those that differ from run to run.
func (w *watcher) note(what string, raw json.RawMessage) {
	var value any
	require.NoError(w.t, json.Unmarshal(raw, &value))
	w.noteValue(what, value)
}

func (w *watcher) noteValue(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			text, isText := member.(string)
			switch name {
			case "sessionUpdate", "kind", "status", "type", "stopReason":
				if isText {
					name += "=" + text
				}
			case "rawInput", "rawOutput", "_meta": // what the model, tools and agents add
				w.see("%s.%s", path, name)
				continue
			case "sessionId": // some agents also name it in answers to requests that name it
				continue
			}
			w.noteValue(path+"."+name, member)
		}
		if len(v) == 0 {
			w.see("%s", path)
		}
	case []any:
		for i, element := range v {
			if i == 20 && !strings.HasSuffix(path, "availableCommands") {
				break // some offer hundreds of models
			}
			name := w.nameOf(element)
			if name != "" && !strings.HasSuffix(path, "content") {
				w.see("%s[%s]", path, name)
				continue
			}
			w.noteValue(path+"["+name+"]", element)
		}
	case nil:
	case bool:
		if v {
			w.see("%s", path)
		}
	default:
		w.see("%s", path)
	}
}

// nameOf returns what distinguishes an element of an array from others.
func (w *watcher) nameOf(element any) string {
	object, ok := element.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range []string{"id", "modelId", "optionId", "value", "name", "sessionUpdate", "type"} {
		if text, ok := object[name].(string); ok {
			return text
		}
	}
	return ""
}
