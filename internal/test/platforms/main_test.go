package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module example.com/m\n\ngo 1.26\n",
		"m.go":               "package m\n\nimport \"os\"\n\nfunc F() int { return os.Getpid() }\n",
		"m_test.go":          "package m\n\nfunc half() int { return F() / 2 }\n",
		"out_test.go":        "package m_test\n\nimport \"example.com/m\"\n\nvar _ = m.F() + m.G()\n",
		"g_linux_test.go":    "package m\n\nfunc G() int { return half() }\n",
		"g_windows_test.go":  "package m\n\nfunc G() string { return missing }\n",
		"sub/sub.go":         "package sub\n\nimport _ \"example.com/m\"\n",
		"sub/sub_windows.go": "package sub\n\nimport \"os\"\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	n, err := check(dir, "linux/arm64")
	require.NoError(t, err)
	require.Equal(t, 4, n, "two packages, one with its tests, and tests from outside")

	_, err = check(dir, "windows/amd64")
	require.ErrorContains(t, err, "undefined: missing")
	require.ErrorContains(t, err, "mismatched types int and string")
	require.ErrorContains(t, err, `"os" imported and not used`)
	_, err = check(dir, "plan9")
	require.ErrorContains(t, err, "GOOS/GOARCH")
}
