package proxy_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// The test binary acts as an agent with configurable abilities, which stores its sessions in files.
//
// It answers a prompt with "N:" and all prompts that it knows, joined by "+": those in its own
// history, and those from context blocks with "~" before them. Some prompts do more:
//
//	crash     it exits with status 3 in the turn
//	hang      it answers only a cancel
//	mode M    it says that the current mode is M
//	fail M    it answers with an error M
//	tool O    a tool call fails with the output O
//	refused O the same, and it answers with an error
const (
	simulatedRole     = "simulated"
	simulatedVariable = "ACP_PROXY_TEST_SIMULATED"
)

// abilities are what a simulated agent can do, and how it does it.
type abilities struct {
	Load, Resume, Fork, List, Close, Delete, Roots, SystemPrompt bool

	Dir string // of the session files
	// Bound: it does not open a session in another working directory than the one it was created
	// in.
	Bound bool
	// Updated: from its second start on it takes roots by the protocol.
	Updated bool
	// Gullible: it loads any id, without a conversation if there is none.
	Gullible bool
	// LateReplay: it replays after its response to session/load, before it takes the next message.
	LateReplay bool
	// Refuse is a method that it rejects with Code. If Why is not "", it does so while that file
	// exists, and with its text. A text here could be taken for a secret.
	Refuse string
	Code   int
	Why    string
	// NoServers: it rejects sessions with MCP servers.
	NoServers bool
	// Login: it requires a login.
	Login bool
	// Commands is the array that it announces when a session is opened; Mute: it announces nothing.
	Commands string
	Mute     bool
	// Page is the number of sessions in a page of its list, all if 0.
	Page int
}

// simulatedCommand returns a command that runs this binary as a simulated agent.
func simulatedCommand(t testing.TB, a abilities) (process.Command, proctest.Record) {
	t.Helper()
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	record := proctest.NewRecord(t)
	return process.Command{Path: proctest.Executable(), Name: simulatedRole,
		Env: proctest.Env(simulatedRole, simulatedVariable+"="+string(raw), record.Env())}, record
}

// simulated is the agent's state.
type simulated struct {
	abilities
	hanging  json.RawMessage // id of the prompt that hangs
	loggedIn bool
	late     func() // what it has yet to replay, or nil
}

// simulatedSession is what it stores for a session.
type simulatedSession struct {
	Cwd     string
	Roots   []string
	Updates []json.RawMessage
}

type simulatedMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID             string
		Cwd                   string
		AdditionalDirectories []string
		Cursor                string
		ModeID                string
		Prompt                []struct{ Text string }
		MCPServers            []json.RawMessage
	}
}

// simulate runs the agent until its input ends.
func simulate(in *proctest.Input) int {
	s := &simulated{}
	if json.Unmarshal([]byte(os.Getenv(simulatedVariable)), &s.abilities) != nil {
		return 95
	}
	if s.Updated && in.Again {
		s.Roots = true
	}
	flags := slices.DeleteFunc(slices.Clone(os.Args[1:]),
		func(a string) bool { return strings.HasPrefix(a, "-test.") })
	if in.Note(fmt.Sprintf(`{"method":"start","params":%q}`, strings.Join(flags, " "))) != nil {
		return 94
	}
	for {
		line, err := in.Line()
		if err != nil {
			return 0
		}
		var m simulatedMessage
		if json.Unmarshal(line, &m) != nil {
			return 92
		}
		s.take(m)
	}
}

func (s *simulated) take(m simulatedMessage) {
	if s.late != nil {
		s.late()
		s.late = nil
	}
	if why, err := os.ReadFile(s.Why); s.Refuse == m.Method && (s.Why == "" || err == nil) {
		s.fail(m, s.Code, cmp.Or(string(why), "refused"))
		return
	}
	if s.NoServers && len(m.Params.MCPServers) > 0 {
		s.fail(m, -32603, "Internal error")
		return
	}
	if s.Login && !s.loggedIn && strings.HasPrefix(m.Method, "session/") {
		s.fail(m, -32000, "Authentication required")
		return
	}
	id := m.Params.SessionID
	switch m.Method {
	case "initialize":
		s.answer(m, s.initialize())
	case "authenticate", "logout":
		s.loggedIn = m.Method == "authenticate"
		s.answer(m, `{}`)
	case "session/new":
		id = s.free()
		s.store(id, simulatedSession{Cwd: m.Params.Cwd, Roots: m.Params.AdditionalDirectories})
		s.commands(id)
		s.answer(m, `{"sessionId":"`+id+`","modes":{"currentModeId":"ask","availableModes":[]}}`)
	case "session/load", "session/resume", "session/fork":
		s.reopen(m)
	case "session/prompt":
		s.prompt(m)
	case "session/cancel":
		if s.hanging != nil {
			m.ID, s.hanging = s.hanging, nil
			s.answer(m, `{"stopReason":"cancelled"}`)
		}
	case "session/set_mode":
		s.update(id, `{"sessionUpdate":"current_mode_update","currentModeId":"`+m.Params.ModeID+
			`"}`)
		s.answer(m, `{}`)
	case "session/list":
		s.list(m)
	case "session/close":
		s.answer(m, `{}`)
	case "session/delete":
		_ = os.Remove(s.file(id))
		s.answer(m, `{}`)
	default:
		s.fail(m, -32601, "method not found")
	}
}

func (s *simulated) initialize() string {
	sessions := map[string]any{}
	for name, has := range map[string]bool{
		"resume": s.Resume, "fork": s.Fork, "list": s.List, "close": s.Close, "delete": s.Delete,
		"additionalDirectories": s.Roots,
		"systemPrompt":          s.SystemPrompt,
	} {
		if has {
			sessions[name] = map[string]any{}
		}
	}
	raw, _ := json.Marshal(map[string]any{
		"protocolVersion": 1, "agentInfo": map[string]string{"name": "simulated", "version": "1"},
		"authMethods": []any{map[string]string{"id": "key", "name": "A key"}},
		"agentCapabilities": map[string]any{"loadSession": s.Load, "sessionCapabilities": sessions,
			"promptCapabilities": map[string]bool{"image": true}},
	})
	return string(raw)
}

// reopen answers session/load, session/resume and session/fork.
func (s *simulated) reopen(m simulatedMessage) {
	id := m.Params.SessionID
	kept, ok := s.read(id)
	if !ok && s.Gullible {
		s.commands(id)
		s.answer(m, `{}`)
		return
	}
	if !ok {
		s.fail(m, -32002, "unknown session")
		return
	}
	if s.Bound && kept.Cwd != m.Params.Cwd {
		s.fail(m, -32602, "session of "+kept.Cwd)
		return
	}
	kept.Roots = m.Params.AdditionalDirectories
	result := `{"modes":{"currentModeId":"ask","availableModes":[]}}`
	if m.Method == "session/fork" {
		id = s.free()
		result = `{"sessionId":"` + id + `","modes":{"currentModeId":"ask","availableModes":[]}}`
	}
	s.store(id, kept)
	if m.Method != "session/resume" && !s.LateReplay {
		s.replay(id, kept)
	}
	s.commands(id)
	s.answer(m, result)
	if m.Method != "session/resume" && s.LateReplay {
		s.late = func() { s.replay(id, kept) }
	}
}

func (s *simulated) replay(id string, kept simulatedSession) {
	for i, u := range kept.Updates {
		s.update(id, string(u))
		s.update(id, fmt.Sprintf(`{"sessionUpdate":"usage_update","used":%d}`, i))
	}
}

// commands announces commands.
func (s *simulated) commands(id string) {
	if s.Mute {
		return
	}
	s.update(id, `{"sessionUpdate":"available_commands_update","availableCommands":`+
		cmp.Or(s.Commands, "[]")+`}`)
}

func (s *simulated) prompt(m simulatedMessage) {
	id := m.Params.SessionID
	kept, ok := s.read(id)
	if !ok {
		s.fail(m, -32002, "unknown session")
		return
	}
	var word string
	for _, block := range m.Params.Prompt {
		if !strings.HasPrefix(strings.TrimSpace(block.Text), "<acp-agent-context>") {
			word += block.Text
		}
		kept.Updates = append(kept.Updates, chunk("user", block.Text))
	}
	answer := "N:" + strings.Join(known(kept), "+")
	s.store(id, kept)
	switch {
	case word == "crash":
		s.update(id, string(chunk("agent", "dying")))
		os.Exit(3)
	case word == "hang":
		s.hanging = m.ID
		s.update(id, string(chunk("agent", "hanging")))
		return
	case strings.HasPrefix(word, "fail "):
		s.fail(m, -32603, word[5:])
		return
	case strings.HasPrefix(word, "tool "), strings.HasPrefix(word, "refused "):
		verb, output, _ := strings.Cut(word, " ")
		text, _ := json.Marshal(output)
		s.update(id, `{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"failed","rawOutput":`+
			string(text)+`}`)
		if verb == "refused" {
			s.fail(m, -32603, "refused")
			return
		}
	case strings.HasPrefix(word, "mode "):
		s.update(id, `{"sessionUpdate":"current_mode_update","currentModeId":"`+word[5:]+`"}`)
	}
	kept.Updates = append(kept.Updates, chunk("agent", answer))
	s.store(id, kept)
	s.update(id, string(chunk("agent", answer)))
	s.answer(m, `{"stopReason":"end_turn"}`)
	s.update(id, `{"sessionUpdate":"session_info_update","title":"`+word+`"}`)
}

func chunk(who, text string) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{"sessionUpdate": who + "_message_chunk",
		"content": map[string]string{"type": "text", "text": text}})
	return raw
}

// known returns the prompts that it knows; those from context blocks are marked.
func known(kept simulatedSession) []string {
	var words []string
	for _, u := range kept.Updates {
		var c struct {
			SessionUpdate string
			Content       struct{ Text string }
		}
		_ = json.Unmarshal(u, &c)
		switch text := c.Content.Text; {
		case c.SessionUpdate != "user_message_chunk":
		case strings.HasPrefix(strings.TrimSpace(text), "<acp-agent-context>"):
			// it follows the prompt that it came with
			words = slices.Insert(words, len(words)-1, quotedPrompts(text)...)
		default:
			words = append(words, text)
		}
	}
	return words
}

// quotedPrompts returns the prompts in a context block, marked.
func quotedPrompts(block string) []string {
	var words []string
	_, messages, _ := strings.Cut(block, "The last messages")
	user := false
	for line := range strings.Lines(messages) {
		if word, ok := strings.CutPrefix(line, "> "); ok && user {
			words = append(words, "~"+strings.TrimSpace(word))
		}
		user = line == "user:\n"
	}
	return words
}

func (s *simulated) list(m simulatedMessage) {
	files := s.files()
	from := 0
	_, _ = fmt.Sscanf(m.Params.Cursor, "from %d", &from)
	to := len(files)
	if s.Page > 0 {
		to = min(to, from+s.Page)
	}
	var entries []string
	for _, id := range files[from:to] {
		kept, _ := s.read(id)
		if m.Params.Cwd != "" && m.Params.Cwd != kept.Cwd {
			continue
		}
		entry, _ := json.Marshal(map[string]any{"sessionId": id, "cwd": kept.Cwd,
			"title": "title of " + id, "updatedAt": "2026-01-02T03:04:05Z",
			"_meta": map[string]any{"of": id}})
		entries = append(entries, string(entry))
	}
	next := ""
	if to < len(files) {
		next = fmt.Sprintf(`,"nextCursor":"from %d"`, to)
	}
	s.answer(m, `{"sessions":[`+strings.Join(entries, ",")+`]`+next+`}`)
}

func (s *simulated) answer(m simulatedMessage, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
}

func (s *simulated) fail(m simulatedMessage, code int, message string) {
	if m.ID != nil {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", m.ID, code,
			message)
	}
}

func (s *simulated) update(id, update string) {
	fmt.Printf(
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}`+"\n",
		id, update)
}

func (s *simulated) file(id string) string { return filepath.Join(s.Dir, id+".json") }

// files returns the ids of its sessions.
func (s *simulated) files() []string {
	entries, _ := os.ReadDir(s.Dir)
	var ids []string
	for _, e := range entries {
		ids = append(ids, strings.TrimSuffix(e.Name(), ".json"))
	}
	return ids
}

// free returns an unused id.
func (s *simulated) free() string {
	for n := 1; ; n++ {
		id := fmt.Sprintf("c%d", n)
		if _, taken := s.read(id); !taken {
			return id
		}
	}
}

func (s *simulated) store(id string, kept simulatedSession) {
	raw, _ := json.Marshal(kept)
	if os.WriteFile(s.file(id), raw, 0o600) != nil {
		os.Exit(91)
	}
}

func (s *simulated) read(id string) (kept simulatedSession, ok bool) {
	raw, err := os.ReadFile(s.file(id))
	return kept, err == nil && json.Unmarshal(raw, &kept) == nil
}
