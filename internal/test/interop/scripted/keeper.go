package scripted

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The environment variables of a keeper: the directory of its sessions, and its capabilities for
// sessions besides those that every keeper has, as members of an object.
const (
	KeeperDir          = "KEEPER_DIR"
	KeeperCapabilities = "KEEPER_CAPABILITIES"
)

// kept is a session of a keeper.
type kept struct {
	Cwd  string
	Said []string // the prompts
}

// keeper is an agent that keeps its sessions in a directory, for all of its processes. It answers a
// prompt with everything that its model would be sent: all prompts of the session. The file
// "requests" in the directory has every request, with its params.
type keeper struct {
	dir string
	agent
}

// PlayKeeper serves a client on standard input and output as a keeper.
func PlayKeeper() int {
	k := &keeper{dir: os.Getenv(KeeperDir), agent: agent{out: os.Stdout}}
	lines := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			message
			Params json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil || json.Unmarshal(line, &m.message) != nil {
			return 1
		}
		if err := k.note(m.Method + " " + string(m.Params)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if m.ID != nil {
			k.serve(m.message)
		}
	}
}

func (k *keeper) note(line string) error {
	f, err := os.OpenFile(filepath.Join(k.dir, "requests"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, line)
	return err
}

func (k *keeper) path(id string) string { return filepath.Join(k.dir, filepath.Base(id)+".json") }

func (k *keeper) read(id string) (s kept, ok bool) {
	text, err := os.ReadFile(k.path(id))
	return s, err == nil && json.Unmarshal(text, &s) == nil
}

func (k *keeper) write(id string, s kept) {
	text, _ := json.Marshal(s)
	_ = os.WriteFile(k.path(id), text, 0o600)
}

// fresh returns the id of a new session.
func (k *keeper) fresh() string {
	f, err := os.CreateTemp(k.dir, "raw-*.json")
	if err != nil {
		return ""
	}
	_ = f.Close()
	return strings.TrimSuffix(filepath.Base(f.Name()), ".json")
}

func (k *keeper) serve(m message) {
	id := m.Params.SessionID
	s, known := k.read(id)
	switch {
	case m.Method == "initialize":
		k.answer(m.ID, `{"protocolVersion":1,"agentInfo":{"name":"keeper","version":"1"},"authMethods":[{"id":"key","name":"Key"}],`+
			`"agentCapabilities":{"loadSession":true,"auth":{"logout":{}},"providers":{},"sessionCapabilities":`+
			`{"close":{},"delete":{},"fork":{},"archive":{},"title":{}`+os.Getenv(KeeperCapabilities)+`}}}`)
	case m.Method == "session/new":
		id = k.fresh()
		k.write(id, kept{Cwd: m.Params.Cwd})
		k.answer(m.ID, fmt.Sprintf(`{"sessionId":%q}`, id))
	case m.Method == "session/list":
		k.list(m)
	case m.Params.SessionID == "": // authenticate and so on
		k.answer(m.ID, `{}`)
	case !known:
		k.write404(m)
	case m.Method == "session/fork":
		id = k.fresh()
		k.write(id, kept{m.Params.Cwd, s.Said})
		k.answer(m.ID, fmt.Sprintf(`{"sessionId":%q}`, id))
	case m.Method == "session/load":
		k.say(id, "replayed: "+strings.Join(s.Said, "; "))
		k.answer(m.ID, `{}`)
	case m.Method == "session/delete":
		_ = os.Remove(k.path(id))
		k.answer(m.ID, `{}`)
	case m.Method == "session/prompt":
		for _, block := range m.Params.Prompt {
			s.Said = append(s.Said, block.Text)
		}
		k.write(id, s)
		k.say(id, "sent: "+strings.Join(s.Said, "; "))
		k.answer(m.ID, `{"stopReason":"end_turn"}`)
	default:
		k.answer(m.ID, `{}`)
	}
}

func (k *keeper) write404(m message) {
	k.agent.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no such session"}}`, m.ID)
}

func (k *keeper) list(m message) {
	type entry struct {
		SessionID string `json:"sessionId"`
		Cwd       string `json:"cwd"`
		Title     string `json:"title"`
	}
	entries := []entry{}
	paths, _ := filepath.Glob(filepath.Join(k.dir, "raw-*.json"))
	for _, path := range paths {
		id := strings.TrimSuffix(filepath.Base(path), ".json")
		if s, ok := k.read(id); ok && (m.Params.Cwd == "" || m.Params.Cwd == s.Cwd) {
			entries = append(entries, entry{id, s.Cwd, "title: " + strings.Join(s.Said, "; ")})
		}
	}
	text, _ := json.Marshal(map[string]any{"sessions": entries})
	k.answer(m.ID, string(text))
}
