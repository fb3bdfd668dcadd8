package discovery_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestMain(m *testing.M) {
	volume.Checks(25, 100) // random trees
	goleak.VerifyTestMain(m, dirtest.InMemory())
}

// fataler is the common part of testing.T, testing.B and rapid.T.
type fataler interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// tree makes a directory with files and returns its real path.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	top := dirtest.New(t)
	for name, text := range files {
		write(t, filepath.Join(top, filepath.FromSlash(name)), text)
	}
	return top
}

// write writes a file.
func write(t fataler, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// link makes a symbolic link. On Windows that needs a privilege.
func link(t testing.TB, target, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	err := os.Symlink(target, path)
	if err != nil && runtime.GOOS == "windows" {
		t.Skip("no symbolic links here: ", err)
	}
	require.NoError(t, err)
}

// open opens a workspace on the roots, cwd first. The caller closes it.
func open(t fataler, roots ...string) *workspace.Workspace {
	t.Helper()
	set, err := workspace.NewRoots(roots[0], roots[1:])
	require.NoError(t, err)
	ws, err := workspace.Open(testContext(t), set, workspace.Options{})
	require.NoError(t, err)
	return ws
}

// scan scans the roots with the options.
func scan(t testing.TB, o discovery.Options, roots ...string) *discovery.Catalog {
	t.Helper()
	ws := open(t, roots...)
	t.Cleanup(func() { _ = ws.Close() })
	c, err := discovery.ScanWith(t.Context(), ws, o)
	require.NoError(t, err)
	return c
}

// skill returns a SKILL.md that breaks no rule.
func skill(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n\nDo it.\n"
}

// names returns the names of artifacts.
func names(list []discovery.Artifact) []string {
	all := []string{}
	for _, a := range list {
		all = append(all, a.Name)
	}
	return all
}

// summary describes each artifact and limit, with paths relative to top.
func summary(c *discovery.Catalog, top string) string {
	var b strings.Builder
	for _, a := range c.Artifacts() {
		b.WriteString(line(a, top))
	}
	for _, cut := range c.LimitsReached() {
		b.WriteString("limit: " + relative(cut.String(), top) + "\n")
	}
	return b.String()
}

func line(a discovery.Artifact, top string) string {
	s := string(a.State) + " " + string(a.Kind) + " " + a.Name + " in " + relative(a.Path, top)
	if a.Description != "" {
		s += "\n\tdescription: " + a.Description
	}
	if a.Hint != "" {
		s += "\n\thint: " + a.Hint
	}
	if a.Applies.Mode != "" && a.Applies.Mode != discovery.Always {
		s += "\n\tapplies: " + strings.Join(append([]string{string(a.Applies.Mode)},
			a.Applies.Globs...), " ")
	}
	for _, in := range a.Imports {
		s += "\n\timports: " + relative(in.Ref.Real(), top)
	}
	if a.Reason != "" {
		s += "\n\twhy: " + relative(a.Reason, top)
	}
	for _, d := range a.Diagnostics {
		s += "\n\trule: " + relative(d, top)
	}
	return s + "\n"
}

// relative returns text with slashes and without top.
func relative(text, top string) string {
	return filepath.ToSlash(strings.ReplaceAll(text, top+string(filepath.Separator), ""))
}

// testContext returns the context of a test, if it has one.
func testContext(t any) context.Context {
	if has, ok := t.(interface{ Context() context.Context }); ok {
		return has.Context()
	}
	return context.Background()
}
