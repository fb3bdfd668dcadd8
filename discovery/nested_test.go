package discovery_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/workspace"
)

func TestA25_For(t *testing.T) {
	top := tree(t, map[string]string{"x/AGENTS.md": "Of x.", "x/y/CLAUDE.md": "Of y. @more.md", "x/y/more.md": "more", "x/y/AGENTS.md": ""})
	c := scan(t, discovery.Options{}, top)
	found := func(path string) discovery.Instructions {
		list, err := c.For(t.Context(), filepath.Join(top, path))
		require.NoError(t, err)
		return c.Assemble(list)
	}
	require.Empty(t, found("main.go").Sources)
	require.Len(t, found("x/a.go").Sources, 1)
	require.Len(t, found("x/y/b.go").Sources, 3)
	write(t, top+"/x/y/more.md", "changed")
	require.Contains(t, found("x/y/b.go").String(), "changed", "files are read when For is called")
}

// A limit that was reached is in the list, but not among the instructions.
func TestA25_ForReportsLimits(t *testing.T) {
	files := map[string]string{"x/AGENTS.md": "Of x."}
	for i := range 5 {
		files[fmt.Sprintf("x/.cursor/rules/%d/rule.mdc", i)] = "---\nalwaysApply: true\n---\nx"
	}
	top := tree(t, files)
	c := scan(t, limited("MaxDirs", 2), top)
	list, err := c.For(t.Context(), filepath.Join(top, "x", "main.go"))
	require.NoError(t, err)
	require.Len(t, list, 4)
	cut := list[3]
	require.Equal(t, discovery.Invalid, cut.State)
	require.Equal(t, filepath.Join(top, "x", ".cursor", "rules"), cut.Path)
	require.Contains(t, cut.Reason, "was not scanned completely: the limit of 2 directories was reached at "+cut.Path)
	require.Len(t, c.Assemble(list).Sources, 3)
}

func TestA23_ForOutsideTheRoots(t *testing.T) {
	top := tree(t, map[string]string{"a/AGENTS.md": "x", "AGENTS.md": "above"})
	_, err := scan(t, discovery.Options{}, top+"/a").For(t.Context(), top+"/x.go")
	var outside *workspace.OutsideError
	require.ErrorAs(t, err, &outside)
}
