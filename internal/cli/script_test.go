package cli

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
)

// TestMain makes acting and without-landlock commands of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){
		"acting":           acting,
		"without-landlock": withoutLandlock,
	})
}

// built returns the path of the program, which it builds when it is first called. The program is
// built without the race detector, because the scripts start it hundreds of times; make kills runs
// them with it.
func built(t *testing.T) string {
	t.Helper()
	build.Do(func() { remove, buildError = program.Build() })
	if buildError != nil {
		t.Fatal(buildError)
	}
	return program.Path()
}

var (
	build      sync.Once
	remove     func()
	buildError error
)

// leakless removes the program, and fails if tests leave goroutines behind.
type leakless struct{ m *testing.M }

func (l leakless) Run() int {
	code := l.m.Run()
	if remove != nil {
		remove()
	}
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	return code
}

func TestScripts(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		// Shells cannot undo an inherited nohup, but signals that are caught here have their
		// default action in children.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	workspace, err := filepath.Abs("../../testdata/workspace")
	if err != nil {
		t.Fatal(err)
	}
	var database pgtest.Server
	t.Cleanup(database.Stop)
	path := filepath.Dir(built(t)) + string(filepath.ListSeparator) + os.Getenv("PATH")
	testscript.Run(t, testscript.Params{
		Files: runnable(t),
		// The default is left behind if only some scripts run.
		WorkdirRoot:         dirtest.Short(t),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", path)
			e.Setenv("WORKSPACE", workspace)
			// The race detector makes each command sleep for a second at its end.
			e.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=20"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Values[modelKey{}] = &scriptModel{}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "postgres" {
				return pgtest.Available(t), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"modelserver": modelServer,
			// "postgres" sets POSTGRES_URL to the address of an empty database.
			"postgres": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("POSTGRES_URL", database.Address(t))
			},
		},
	})
}

// runnable returns the scripts whose programs are installed, and skips the others.
func runnable(t *testing.T) (files []string) {
	t.Helper()
	all, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	for _, file := range all {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var missing []string
		for _, program := range []string{
			"cat", "dd", "grep", "head", "ln", "ls", "sed", "setsid", "sh", "sleep", "true",
		} {
			used := regexp.MustCompile(`(?m)^[^#\n]*[ \t(|;!"]` + program + `[ "\n]`).Match(text)
			if _, err := exec.LookPath(program); err != nil && used {
				missing = append(missing, program)
			}
		}
		if missing == nil {
			files = append(files, file)
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) { needs.Programs(t, missing...) })
	}
	return files
}

// scriptModel is the model server of a script.
type scriptModel struct{ *modelserver.Server }

type modelKey struct{}

// modelServer is a command of the scripts. "modelserver" starts a model server until the end of the
// script and sets MODEL_URL to its address; "modelserver requests" prints how many requests the
// model has received, and their bodies.
func modelServer(ts *testscript.TestScript, _ bool, args []string) {
	model := ts.Value(modelKey{}).(*scriptModel)
	if len(args) == 1 && args[0] == "requests" {
		requests := model.Requests()
		_, err := fmt.Fprintf(ts.Stdout(), "%d requests\n", len(requests))
		ts.Check(err)
		for _, r := range requests {
			_, err := fmt.Fprintf(ts.Stdout(), "%s\n", r.Body)
			ts.Check(err)
		}
		return
	}
	var err error
	model.Server, err = modelserver.Start()
	ts.Check(err)
	ts.Defer(func() { ts.Check(model.Close()) })
	ts.Setenv("MODEL_URL", model.URL())
}
