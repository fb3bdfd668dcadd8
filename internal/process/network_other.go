//go:build !linux

package process

import (
	"errors"
	"os/exec"

	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// namespaceAvailable returns an error: only Linux has network namespaces.
func namespaceAvailable([]string) error { return errors.New("only Linux has network namespaces") }

// launch starts cmd as p says.
func (n *network) launch(cmd *exec.Cmd, p sandbox.Policy) error { return n.launchHere(cmd, p) }

func runHelper() error { return errors.New("only Linux has network namespaces") }
