package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// A panic in a callback is the caller's, who may recover, whatever worker it happened on.
func TestW8_APanicInAScanReachesItsCaller(t *testing.T) {
	top := realDir(t)
	for _, dir := range []string{"a/b", "c", "d/e/f"} {
		mkdir(t, filepath.Join(top, dir))
	}
	w := open(t, top)
	for _, workers := range []int{1, 4} {
		for name, look := range map[string]func(*workspace.Folder) func() error{
			"look":    func(*workspace.Folder) func() error { panic("in look") },
			"deliver": func(*workspace.Folder) func() error { return func() error { panic("in deliver") } },
			"deep": func(f *workspace.Folder) func() error {
				if f.Ref().Rel() == "d/e" {
					panic("in deep")
				}
				return nil
			},
		} {
			err := recovered(func() {
				_ = w.Scan(t.Context(), ".", workspace.ScanOptions{Workers: workers}, look)
			})
			require.Contains(t, err, "in "+name)
		}
	}
	require.NoError(t, w.Scan(t.Context(), ".", workspace.ScanOptions{}, func(*workspace.Folder) func() error { return nil }))
}

func recovered(do func()) (text string) {
	defer func() {
		if value := recover(); value != nil {
			text, _ = value.(string)
		}
	}()
	do()
	return ""
}
