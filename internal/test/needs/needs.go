// Package needs skips tests for which a program or a package of npm is missing, with a message
// "needs NAME: ...". In CI, where everything is installed, such tests fail. It must only be
// imported by tests.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Programs skips the test unless all programs are in PATH. It returns their paths.
func Programs(t testing.TB, names ...string) (paths []string) {
	t.Helper()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			Missing(t, name, "it is not installed")
		}
		paths = append(paths, path)
	}
	return paths
}

// Missing skips the test because something is missing, for a reason.
func Missing(t testing.TB, name, why string) {
	t.Helper()
	if InCI() {
		t.Fatalf("needs %s: %s", name, why)
	}
	t.Skipf("needs %s: %s", name, why)
}

// InCI reports whether tests fail if something is missing.
func InCI() bool { return os.Getenv("CI") != "" }
