package proctest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// MarkVariable is the environment variable that a [Mark] is in.
const MarkVariable = "ACP_AGENT_TEST_MARK"

// Mark is what processes are found by: it is in the environment of those that a test starts, and of all that these start.
type Mark string

// NewMark returns a mark that no other test has, nor another run of this one at the same time.
func NewMark(t testing.TB) Mark { return Mark(fmt.Sprintf("%s-%d", t.Name(), os.Getpid())) }

// Env is the variable that marks a process, as "NAME=VALUE".
func (m Mark) Env() string { return MarkVariable + "=" + string(m) }

// Processes are the ids of the processes with the mark. Those that have ended have no environment, also when nobody has
// collected them.
func (m Mark) Processes() (ids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+m.Env()+"\x00")) {
			continue
		}
		if id, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
