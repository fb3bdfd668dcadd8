package loglimit_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/serve/loglimit"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output holds the lines of a log.
type output struct{ logtest.Text }

// with returns how many lines contain all words.
func (o *output) with(words ...string) (n int) {
lines:
	for line := range strings.Lines(o.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue lines
			}
		}
		n++
	}
	return n
}

// limited returns a limited log that ends with the test, and what it writes.
func limited(t *testing.T, excess loglimit.Excess) (*slog.Logger, *output) {
	var o output
	log, end := loglimit.New(o.Logger(slog.LevelDebug), excess)
	t.Cleanup(end)
	return log, &o
}

// Anybody can be refused as often as they like. The first refusals are in the log, and how many
// there were; what users do is in it too.
//
// Clause N6.
func TestRefusalsOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := limited(t, loglimit.Omit)
		refuse := func(from string) { log.With("from", from).Warn("refused") }
		for i := range 40_000 {
			refuse(fmt.Sprintf("192.0.2.1:%d", i))
		}
		for i := range 1000 {
			refuse(fmt.Sprintf("[2001:db8::%x]:443", i)) // one network
		}
		log.With("from", "192.0.2.1:1").With("user", "ana").Warn("refused")
		log.With("user", "ana", "from", "192.0.2.1:1").Info("connected")
		require.Equal(t, 5, out.with("refused", "from=192.0.2.1:", "level=WARN")-1)
		require.Equal(t, 5, out.with("refused", "2001:db8::"))
		require.Equal(t, 1, out.with("user=ana", "refused"))
		require.Equal(t, 1, out.with("connected"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, out.with(loglimit.Omitted))
		require.Equal(t, 1, out.with(loglimit.Omitted, "omitted=refused", "count=40990",
			"level=WARN", "within=1m"))
		refuse("192.0.2.1:1")
		require.Equal(t, 6, out.with("refused", "from=192.0.2.1:", "level=WARN")-1)
		for i := range 100_000 {
			refuse(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
		}
		require.Less(t, out.with("refused"), 80, "all addresses together have a limit")
	})
}

// A user who does one thing without end does not keep the others out of the log, nor what else the
// same user does.
//
// Clause N6.
func TestRecordsOfAUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := limited(t, loglimit.Omit)
		ana := log.With("user", "ana")
		child := ana.With("child", "agent")
		for i := range 10_000 {
			ana.Info("opened", "n", i)
			child.Info(fmt.Sprintf("line %d", i))
			child.Warn("not passed on")
		}
		require.LessOrEqual(t, out.with("user=ana"), 700)
		for range 10 {
			ana.Warn("answered")
			log.Warn("of bob", "user", "bob")
			log.Error("of the server")
		}
		for _, message := range []string{"answered", `"of bob"`, `"of the server"`} {
			require.Equal(t, 10, out.with(message), message)
		}
		for range 1000 {
			ana.Debug("debug")
		}
		require.Equal(t, 1000, out.with("debug"), "only wanted for a while, and then all")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, out.with(loglimit.Omitted, "user=ana", "omitted=opened"))
		require.Equal(t, 1, out.with(loglimit.Omitted, "user=ana", "child=agent",
			`omitted="lines of child processes"`))
	})
}

// A user who must be audited is slowed down, alone, and no line is left out.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := limited(t, loglimit.Delay)
		begun := time.Now()
		ana := log.With("user", "ana")
		for range 3_700 {
			ana.Info("could not open a session")
		}
		log.Info("deleted a session", "user", "ana")
		took := time.Since(begun)
		require.Greater(t, took, 20*time.Second)
		log.With("user", "bob").Info("deleted a session")
		require.Equal(t, took, time.Since(begun), "another user does not wait")
		require.Equal(t, 3_702, out.with("user="))
	})
}

// What a user may cause is limited by its size too.
//
// Clause N6.
func TestLargeRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := limited(t, loglimit.Omit)
		folders := strings.Repeat("x", 100<<10)
		for range 100 { // 10 MB
			log.With("user", "ana").Info("opened", "folders", folders)
		}
		require.Less(t, len(out.String()), 1<<20)
		require.NotZero(t, out.with("opened"))
	})
}

// What was left out is also said when the log ends.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		log, end := loglimit.New(out.Logger(slog.LevelInfo), loglimit.Omit)
		for range 1000 {
			log.Warn("again", "from", "192.0.2.1:1")
		}
		end()
		require.Equal(t, 1, out.with(loglimit.Omitted, "count=995"))
		log.Warn("late")
		require.Equal(t, 1, out.with("late"))
	})
}
