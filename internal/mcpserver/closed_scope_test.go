package mcpserver_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpserver"
)

func TestM8_M10_ListRootsAnswersWhileTheScopeIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // to each question, "" for none
		note   string
		o      mcpserver.Options
	}{
		"an error":         {`"error":{"code":-32603,"message":"not now"}`, "not now", mcpserver.Options{}},
		"a time-out":       {"", "did not say its roots within 50ms", mcpserver.Options{Timeout: 50 * time.Millisecond}},
		"no list":          {`"result":{"roots":7}`, "does not say its roots", mcpserver.Options{}},
		"no valid root":    {`"result":{"roots":[null]}`, "no valid entry", mcpserver.Options{}},
		"no answer at all": {`"result":null`, "", mcpserver.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.o)
			p.begin(withRoots)
			p.write(call(1, "list_roots", `{}`))
			m := p.until(func(m message) bool {
				if m.Method == "roots/list" && c.answer != "" {
					id, err := json.Marshal(m.ID)
					require.NoError(t, err)
					p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,` + c.answer + `}`)
				}
				return m.ID == 1.0 && m.Method == ""
			})
			require.NotEqual(t, true, m.Result["isError"], m.line)
			require.Equal(t, "client", structured(m)["source"], m.line)
			require.Empty(t, structured(m)["roots"])
			require.Contains(t, structured(m)["note"], c.note)
		})
	}
}

func TestM10_AValidListOpensAScopeThatATimeOutClosed(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, mcpserver.Options{Timeout: 500 * time.Millisecond})
	p.begin(withRoots)
	p.write(call(1, "read_file", `{"path":"f"}`))
	require.Contains(t, p.answerTo(1).text(), "error: No folder is accessible")
	p.write(changed, call(2, "read_file", `{"path":"f"}`))
	m := p.until(func(m message) bool {
		if m.Method == "roots/list" { // also late answers, for which nobody waits any more
			p.answer(m, a)
		}
		return m.ID == 2.0 && m.Method == ""
	})
	require.Contains(t, m.text(), "in a")
}

func TestM10_EveryValidRootIsInScopeAndTheFirstIsTheBase(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b", "only": "here"})
	p := start(t, mcpserver.Options{})
	p.begin(withRoots)
	p.answerRaw(p.question(), `{"roots":[{"uri":"`+dirURI(t, filepath.Join(a, "missing"))+`"},{"uri":"`+dirURI(t, a)+
		`"},null,{"uri":"`+dirURI(t, b)+`"}]}`)
	for path, want := range map[string]string{"f": "in a", filepath.Join(a, "f"): "in a", filepath.Join(b, "f"): "in b", "only": "error: "} {
		p.write(call(1, "read_file", read(path)))
		require.Contains(t, p.answerTo(1).text(), want, path)
	}
}
