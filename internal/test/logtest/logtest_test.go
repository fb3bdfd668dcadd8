package logtest_test

import (
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConcurrentWrites(t *testing.T) {
	var text logtest.Text
	var writers sync.WaitGroup
	for range 10 {
		writers.Go(func() { fmt.Fprintln(&text, "said") })
		writers.Go(func() { _ = text.String() })
	}
	writers.Wait()
	require.Equal(t, 10, text.Count("said\n"))
}

func TestLoggerLevel(t *testing.T) {
	var text logtest.Text
	log := text.Logger(slog.LevelInfo)
	log.Debug("quiet")
	log.Info("loud", "n", 1)
	require.Zero(t, text.Count("quiet"))
	require.Contains(t, text.String(), "msg=loud n=1")
}

func ExampleText() {
	var text logtest.Text
	cmd := exec.Command("go", "no-such-command")
	cmd.Stderr = &text
	_ = cmd.Run()
	fmt.Println(text.Count("unknown command"))
	// Output: 1
}
