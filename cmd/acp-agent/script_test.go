package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/testutil/dirtest"
)

// TestMain makes the program itself a command of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){
		"acp-agent": func() {
			ctx, stop := signal.NotifyContext(context.Background(), ends()...)
			defer stop()
			os.Exit(run(ctx, os.Args[1:], standardStreams()))
		},
	})
}

// leakless fails tests that leave goroutines behind.
type leakless struct{ m *testing.M }

func (l leakless) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	return code
}

func TestScripts(t *testing.T) {
	workspace, err := filepath.Abs("../../testdata/workspace")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		WorkdirRoot:         dirtest.Short(t), // its own is left behind where only some scripts run
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("WORKSPACE", workspace)
			// The race detector has each program sleep for a second at its end, and the scripts start hundreds.
			e.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=20"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return nil
		},
	})
}
