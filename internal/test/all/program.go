package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// tested is the environment variable with the path of the program, which tests otherwise build.
const tested = "ACP_AGENT_BINARY"

// build builds the program below dir, which it replaces, once for all packages that test it. Its
// path changes with the program, so that the go command does not take results for another program
// from its cache.
func build(ctx context.Context, dir string) error {
	if os.Getenv(tested) != "" {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	name := "acp-agent"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	built := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-w",
		"-o", built, "./cmd/acp-agent")
	cmd.Env = append(os.Environ(), released()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(filepath.Join(dir, fmt.Sprintf("%.8x", sha256.Sum256(content)), name))
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Rename(built, path); err != nil {
		return err
	}
	return os.Setenv(tested, path)
}
