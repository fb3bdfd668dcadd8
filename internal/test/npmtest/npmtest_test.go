package npmtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMissingPackageSkipsTheTest(t *testing.T) {
	for ci, failed := range map[string]bool{"": false, "true": true} {
		t.Setenv("CI", ci)
		stopped := stop{TB: t}
		func() {
			defer func() { _ = recover() }()
			npmtest.File(&stopped, "testdata/node", "no-such-package")
		}()
		require.Equal(t, failed, stopped.failed)
		require.Contains(t, stopped.words, "needs npm: ")
	}
}

// stop is a test that notes why it stops.
type stop struct {
	testing.TB
	failed bool
	words  string
}

func (s *stop) Helper() {}

func (s *stop) Skipf(format string, args ...any) {
	s.words = fmt.Sprintf(format, args...)
	panic(s)
}

func (s *stop) Fatalf(format string, args ...any) {
	s.failed = true
	s.Skipf(format, args...)
}
