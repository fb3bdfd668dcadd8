package workspace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What the targets of Windows' links mean: symbolic links, junctions, and the places where a volume is
// mounted, all as the standard library reads them. A top that is no root's leads outside.
func TestC7_WindowsLinkTargets(t *testing.T) {
	for target, want := range map[string]location{
		`C:\root\d`:                {`C:\`, []string{"root", "d"}},
		`c:/root/d/`:               {`c:\`, []string{"root", "d"}},
		`\\?\C:\root\d`:            {`C:\`, []string{"root", "d"}},
		`\\server\share\d`:         {`\\server\share\`, []string{"d"}},
		`\\?\UNC\server\share\d`:   {`\\server\share\`, []string{"d"}},
		`\\?\Volume{0a1b-2c}\d`:    {`Volume{0a1b-2c}\`, []string{"d"}},
		`\\.\PhysicalDrive0\d`:     {`\\.\PhysicalDrive0\`, []string{"d"}},
		`..\d`:                     {"", []string{"..", "d"}},
		`d/e\f`:                    {"", []string{"d", "e", "f"}},
		`\root\d`:                  {"?", []string{"root", "d"}},
		`\??\C:\root`:              {"?", []string{"??", "C:", "root"}},
		`C:d`:                      {"?", []string{"d"}},
		`\\?\GLOBALROOT\Device\x\`: {`GLOBALROOT\`, []string{"Device", "x"}},
	} {
		top, names, _ := drives{}.split(target)
		require.Equal(t, want, location{top, names}, target)
	}
	for _, top := range []string{"?", `Volume{0a1b-2c}\`, `\\.\PhysicalDrive0\`, `\\server\share\`} {
		require.False(t, drives{}.same(top, `C:\`), top)
	}
	require.False(t, drives{}.same("?", "?"), "where only a process knows is nowhere")
	require.True(t, drives{}.same(`c:\`, `C:\`))
}
