package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/cli/registry"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// officialRegistry is the address of the ACP registry.
const officialRegistry = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"

// newAgentsUpdate returns the command that stores a copy of a registry.
func newAgentsUpdate(set *settings) *cobra.Command {
	return set.accept(&cobra.Command{
		Use:   "update FILE",
		Short: "Store a list of agents, such as that of the ACP registry",
		Args: takes(1, 1, "the FILE of a registry.json", ", and downloads none. That of the ACP "+
			"registry is "+officialRegistry),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(_ *cobra.Command, args []string) error {
			return updateRegistry(set, args[0])
		},
	}, "state-dir")
}

// updateRegistry stores a copy of the registry in a file.
func updateRegistry(set *settings, path string) error {
	raw, err := namedfile.ReadBounded(path, registry.MaxSize)
	if err != nil {
		return fmt.Errorf("%w; give the registry.json that you downloaded", namedfile.Explain(err))
	}
	r, leftOut, err := registry.Parse(raw)
	if err == nil && len(r.Agents) == 0 {
		err = errors.New("it has no agents that can be used")
	}
	const told = 10
	for i, problem := range leftOut {
		if i == told {
			set.note("and %d more", len(leftOut)-told)
			break
		}
		set.note("left out %s", text.Line(problem.Error(), 300))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if r.CopiedFrom, err = filepath.Abs(path); err != nil {
		return err
	}
	r.CopiedAt = time.Now().UTC().Truncate(time.Second)
	if err := r.Write(registryIn(set.dir())); err != nil {
		return fmt.Errorf("cannot store the list of agents: %w", err)
	}
	_, err = fmt.Fprintf(set.out, "stored %s; acp-agent agents lists them\n",
		text.Count(len(r.Agents), "agent", "agents"))
	return err
}
