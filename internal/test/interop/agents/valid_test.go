package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	lines, err := schema.Follow(true)
	require.NoError(t, err)
	return &judge{lines: lines, own: own}
}

// tap is a [wire.Tap].
func (j *judge) tap(sent bool, line []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if sent {
		j.lines.Client(string(line))
		return
	}
	var m struct {
		Method string
		Error  struct{ Message string }
	}
	_ = json.Unmarshal(line, &m)
	if err := j.lines.Agent(string(line)); err != nil && !slices.Contains(j.own, m.Method) {
		j.wrong = append(j.wrong, fmt.Sprintf("%v\nin the line %s", err, line))
	}
	if strings.ContainsAny(m.Error.Message, "\r\n") {
		j.wrong = append(j.wrong, "an error of several lines: "+string(line))
	}
}

// all returns everything that was found invalid.
func (j *judge) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wrong
}
