//go:build !linux

package process

import (
	"errors"
	"os/exec"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// networkLevel returns how a list of hosts is enforced: only Linux has network namespaces.
func networkLevel([]string) sandbox.Network { return sandbox.ProxyPort }

// launch starts cmd as p says.
func (n *network) launch(cmd *exec.Cmd, p sandbox.Policy) error { return n.launchHere(cmd, p) }

func runHelper() error { return errors.New("only Linux has network namespaces") }
