package cli

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	hostproxy "github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

type sandboxFlags struct {
	write, read  []string
	ports, hosts string
	deferred     bool
}

func newSandbox(set *settings) *cobra.Command {
	var f sandboxFlags
	cmd := set.newCommand("sandbox", cobra.ArbitraryArgs, needsConfig, flags{
		"write": &f.write, "read": &f.read, "deferred": &f.deferred, "ports": &f.ports,
		"hosts": &f.hosts, "sandbox": nil, "dir": nil,
		"state-dir": nil}, // which it hides if there is one
		func(cmd *cobra.Command, args []string) error {
			if f.deferred { // args only show what runs
				return exitStatus(process.RunDeferred())
			}
			before, line := splitAtDash(cmd, args)
			if len(before) > 0 || len(line) == 0 {
				return usage.Errorf("put the command to run after --: acp-agent sandbox --dir DIR " +
					"-- COMMAND")
			}
			restrictions, err := f.restrictions(cmd, set)
			if err != nil {
				return err
			}
			roots, err := rootsInSandbox(set.dirs)
			if err != nil {
				return err
			}
			command, err := confine.Command(process.Command{Path: line[0], Args: line[1:]},
				restrictions, roots)
			if err != nil {
				return err
			}
			return exitStatus(process.RunInTerminal(cmd.Context(), command, set.in, set.out,
				set.err))
		})
	_ = cmd.Flags().MarkHidden("deferred") // it exists
	return cmd
}

// restrictions returns the sandbox of the command.
func (f sandboxFlags) restrictions(
	cmd *cobra.Command, set *settings,
) (r sandbox.Settings, err error) {
	for flag, paths := range map[string][]string{"write": f.write, "read": f.read} {
		for i, path := range paths {
			if strings.HasPrefix(path, "$") {
				continue
			}
			if paths[i], err = filepath.Abs(path); err != nil {
				return r, err
			}
			if _, err := os.Stat(path); err != nil {
				return r, usage.Errorf("--%s: %v", flag, namedfile.Explain(err))
			}
		}
	}
	r = set.sandboxed(sandbox.Settings{Mode: sandbox.Write, Write: f.write, Read: f.read})
	if cmd.Flags().Changed("ports") {
		if r.Ports, err = parsePorts(f.ports); err != nil {
			return r, err
		}
	}
	if cmd.Flags().Changed("hosts") {
		if r.Hosts, err = hostproxy.ParseHosts(f.hosts); err != nil {
			return r, usage.Errorf("--hosts: %v", err)
		}
	}
	return r, nil
}

// rootsInSandbox returns the folders of --dir.
func rootsInSandbox(dirs []string) (roots []workspace.Root, err error) {
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err == nil {
			_, err = os.Stat(path)
		}
		var at workspace.Dir
		if err == nil {
			at, err = workspace.ParseDir(path)
		}
		if err != nil {
			return nil, usage.Errorf("--dir %q cannot be opened: %v; create the folder or give "+
				"another one", dir, cmp.Or(errors.Unwrap(err), err))
		}
		roots = append(roots, workspace.Root{Dir: at, Real: workspace.Real(at)})
	}
	return roots, nil
}

// exitStatus returns the error with which we end as a command did.
func exitStatus(err error) error {
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		return &statusError{exit.Status}
	}
	return err
}

func parsePorts(list string) (hostproxy.Ports, error) {
	ports := hostproxy.Ports{Limited: true}
	for port := range strings.SplitSeq(list, ",") {
		if port == "" {
			continue
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return hostproxy.Ports{},
				usage.Errorf("--ports: %q is not a port: give numbers, such as 443,8080", port)
		}
		ports.List = append(ports.List, uint16(n))
	}
	return ports, nil
}
