package agents

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/schema"
)

// published is where npm installs the ACP schema; without it messages are not validated.
const published = "../../../../testdata/node/node_modules/@agentclientprotocol/sdk/schema/v1"

var loadSchema = sync.OnceValues(func() (*schema.Schema, error) {
	if _, err := os.Stat(published); err != nil {
		return nil, nil
	}
	return schema.Load(published)
})

// judge validates the messages sent to an editor as they arrive.
type judge struct {
	mu    sync.Mutex
	lines *schema.Conversation // nil without a schema
	own   []string             // methods that are not validated
	wrong []string
}

func newJudge(t *testing.T, own []string) *judge {
	t.Helper()
	s, err := loadSchema()
	require.NoError(t, err)
	j := &judge{own: own}
	if s != nil {
		j.lines = s.Relayed()
	}
	return j
}

// tap is a [wire.Tap].
func (j *judge) tap(sent bool, line []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.lines == nil:
	case sent:
		j.lines.Client(string(line))
	default:
		var m struct{ Method string }
		_ = json.Unmarshal(line, &m)
		if err := j.lines.Agent(string(line)); err != nil && !slices.Contains(j.own, m.Method) {
			j.wrong = append(j.wrong, err.Error())
		}
	}
}

// all returns everything that was found invalid.
func (j *judge) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wrong
}
