package agents

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/schema"
)

// judge validates the messages sent to an editor as they arrive.
type judge struct {
	mu    sync.Mutex
	lines *schema.Conversation
	own   []string // methods that are not validated
	wrong []string
}

func newJudge(t *testing.T, own []string) *judge {
	t.Helper()
	s, err := schema.Newest()
	require.NoError(t, err)
	return &judge{lines: s.Relayed(), own: own}
}

// tap is a [wire.Tap].
func (j *judge) tap(sent bool, line []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if sent {
		j.lines.Client(string(line))
		return
	}
	var m struct{ Method string }
	_ = json.Unmarshal(line, &m)
	if err := j.lines.Agent(string(line)); err != nil && !slices.Contains(j.own, m.Method) {
		j.wrong = append(j.wrong, err.Error())
	}
}

// all returns everything that was found invalid.
func (j *judge) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wrong
}
