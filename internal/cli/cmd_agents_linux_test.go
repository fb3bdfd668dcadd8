package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The list names the level at which hosts are enforced, for ordinary users too.
//
// Clause X7.
func TestAgentsNameTheLevel(t *testing.T) {
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "agents") // accessible to all users
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	text, err := os.ReadFile(built(t))
	require.NoError(t, err)
	program, config := filepath.Join(dir, "acp-agent"), filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(program, text, 0o755))
	home := filepath.Join(dir, "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(home, nobody, nobody))
		attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	const agent = `{"agents":{"x":{"command":"true","sandbox":"write","sandboxHosts":[]}}}`
	require.NoError(t, os.WriteFile(config, []byte(agent), 0o644))
	say := func(args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.SysProcAttr = dir, attributes
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	proxy := say("sandbox", "--hosts=", "--", "sh", "-c", "echo $HTTP_PROXY")
	own := !strings.Contains(proxy, "@") // no other program reaches it, so it asks for no password
	listed := say("agents", "--config", config)
	require.Equal(t, own, strings.Contains(listed, "no hosts, in a network of its own"), listed)
}
