package pipes

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Build compiles a main package into dir and returns the program's path. pkg is an import path, args are
// flags for go build.
func Build(ctx context.Context, dir, pkg string, args ...string) (string, error) {
	name := filepath.Base(pkg)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	program := filepath.Join(dir, name)
	args = append(append([]string{"build", "-o", program}, args...), pkg)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}
