package proctest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// MarkVariable is the environment variable of a [Mark].
const MarkVariable = "ACP_AGENT_TEST_MARK"

// Mark identifies the processes of a test and their descendants, which have it in their
// environment.
type Mark string

// NewMark returns a mark that is unique among running tests.
func NewMark(t testing.TB) Mark { return Mark(fmt.Sprintf("%s-%d", t.Name(), os.Getpid())) }

// Env returns the environment variable that marks a process, as "NAME=VALUE".
func (m Mark) Env() string { return MarkVariable + "=" + string(m) }

// Processes returns the ids of the running processes with the mark. Processes that have ended have
// no environment, even if they have not been waited for.
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
