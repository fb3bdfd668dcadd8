package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// memory returns a figure of the program's memory in MiB: VmRSS is the current one and VmHWM its
// maximum.
func (a *agent) memory(name string) int {
	a.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.PID()))
	require.NoError(a.t, err)
	found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(a.t, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(a.t, err)
	return n >> 10
}

// Clause W3.
func TestMemoryOfALongLine(t *testing.T) {
	const length = 60 << 20
	for _, c := range []struct {
		name string
		args []string
		most int // MiB
	}{
		{"W3/answered here", nil, length >> 20 * 5 / 2},
		{"W3/passed on to an agent", behind(), length >> 20 * 9 / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t, c.args...).initialize()
			session := a.open(folder(t))
			before := a.memory("VmRSS")
			m := a.try("session/unknown", json.RawMessage(`{"sessionId":"`+session+`","text":"`+strings.Repeat("x", length)+`"}`))
			require.NotNil(t, m.Error)
			require.LessOrEqual(t, a.memory("VmHWM")-before, c.most)
		})
	}
}
