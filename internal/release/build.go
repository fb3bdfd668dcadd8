package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing/fstest"

	"github.com/acp-agent/acp-agent/internal/version"
)

// A target is a platform in the words of Go, of Node.js, and of the ACP registry.
type target struct{ os, arch, nodeOS, nodeCPU, registry string }

var allTargets = []target{
	{"darwin", "amd64", "darwin", "x64", "darwin-x86_64"},
	{"darwin", "arm64", "darwin", "arm64", "darwin-aarch64"},
	{"linux", "amd64", "linux", "x64", "linux-x86_64"},
	{"linux", "arm64", "linux", "arm64", "linux-aarch64"},
	{"windows", "amd64", "win32", "x64", "windows-x86_64"},
	{"windows", "arm64", "win32", "arm64", "windows-aarch64"},
}

// executable returns the file name of the program.
func (t target) executable() string {
	if t.os == "windows" {
		return "acp-agent.exe"
	}
	return "acp-agent"
}

// compile builds the program for each target as the Makefile does, and reads the version from the
// first. The version must contain the commit's date, so that archives have the same date in every
// run.
func (r *release) compile(ctx context.Context, work string, targets []target) error {
	for _, t := range targets {
		p := program{t, filepath.Join(work, t.os+"_"+t.arch, t.executable())}
		_, err := r.run(ctx, []string{"CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch},
			"go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w", "-o", p.path,
			"./cmd/acp-agent")
		if err != nil {
			return err
		}
		r.programs = append(r.programs, p)
	}
	info, err := buildinfo.ReadFile(r.programs[0].path)
	if err != nil {
		return err
	}
	r.version = version.Of(info)
	if r.version.Date.IsZero() {
		return errors.New("the commit is not known: build in a git clone, with git in PATH")
	}
	return nil
}

// run runs a command in the checkout with additional environment variables and returns what it
// prints.
func (r *release) run(
	ctx context.Context, env []string, name string, args ...string,
) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.checkout
	cmd.Env = append(os.Environ(), env...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", cmd, err, out, problems.Bytes())
	}
	return out, err
}

// collect collects the documents that each archive contains besides the program.
func (r *release) collect(ctx context.Context) error {
	licences, err := r.licences(ctx)
	r.files = fstest.MapFS{"LICENSES-OF-MODULES.txt": r.file(licences, plain)}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, failed := os.ReadFile(filepath.Join(r.checkout, name))
		err = cmp.Or(err, failed)
		r.files[name] = r.file(content, plain)
	}
	return err
}
