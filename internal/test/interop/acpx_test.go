package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// acpx runs acpx, a command-line ACP client. Each command starts the program again, except that a
// prompt leaves a process running that serves the following prompts.
type acpx struct {
	t       *testing.T
	bin     string // where it and its Node are
	home    string
	cwd     string
	command string
}

// acpxOn returns acpx in a working directory, using the program with a state directory. The test is
// skipped if acpx is not installed, except in CI.
func acpxOn(t *testing.T, state, cwd string) *acpx {
	t.Helper()
	bin := filepath.Dir(npmtest.File(t, "testdata/node-acpx", ".bin/acpx"))
	a := &acpx{t: t, bin: bin, home: t.TempDir(), cwd: cwd, command: program.Path() + " --state-dir " + state}
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(a.home, ".acpx", "queues", "*")); len(left) > 0 {
			a.try("sessions", "close") // the process that a prompt leaves behind
		}
		require.NoError(t, os.RemoveAll(a.sockets()))
	})
	return a
}

// sockets returns the directory of its sockets, outside its home because socket paths must be
// short.
func (a *acpx) sockets() string {
	sum := sha256.Sum256([]byte(a.home))
	return "/tmp/acpx-" + hex.EncodeToString(sum[:])[:10]
}

// try runs a command of acpx and returns what it printed, and its failure.
func (a *acpx) try(args ...string) (string, error) {
	a.t.Helper()
	args = append([]string{"--agent", a.command, "--cwd", a.cwd, "--format", "json", "--json-strict", "--ttl", "30"}, args...)
	cmd := exec.CommandContext(within(a.t), filepath.Join(a.bin, "acpx"), args...)
	cmd.Env = append(os.Environ(),
		"PATH="+a.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+a.home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("acpx %v: %w\n%s%s", args, err, &stdout, &stderr)
	}
	return stdout.String(), err
}

// run runs a command of acpx, which must succeed.
func (a *acpx) run(args ...string) string {
	a.t.Helper()
	printed, err := a.try(args...)
	require.NoError(a.t, err)
	return printed
}
