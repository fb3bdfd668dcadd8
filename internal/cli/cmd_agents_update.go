package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/cli/registry"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// officialRegistry is the address of the ACP registry.
const officialRegistry = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"

// newAgentsUpdate returns the command that stores a copy of a registry.
func newAgentsUpdate(set *settings) *cobra.Command {
	return set.accept(&cobra.Command{
		Use:   "update FILE|URL",
		Short: "Store a list of agents, such as that of the ACP registry",
		Args: takes(1, 1, "the FILE or URL of a registry.json", ", and downloads nothing that you do "+
			"not name. That of the ACP registry is "+officialRegistry),
		ValidArgsFunction: cobra.FixedCompletions([]string{officialRegistry},
			cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			return updateRegistry(cmd.Context(), set, args[0])
		},
	}, "state-dir")
}

// updateRegistry stores a copy of the registry in a file or at a URL.
func updateRegistry(ctx context.Context, set *settings, source string) error {
	raw, shown, err := fetchRegistry(ctx, source)
	if err != nil {
		return err
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
		return fmt.Errorf("%s: %w", shown, err)
	}
	r.CopiedFrom, r.CopiedAt = shown, time.Now().UTC().Truncate(time.Second)
	if err := r.Write(registryIn(set.dir())); err != nil {
		return fmt.Errorf("cannot store the list of agents: %w", err)
	}
	_, err = fmt.Fprintf(set.out, "stored %s; acp-agent agents lists them\n",
		text.Count(len(r.Agents), "agent", "agents"))
	return err
}

// fetchRegistry returns the registry.json in a file or at a URL, and the source to show for it.
func fetchRegistry(ctx context.Context, source string) (raw []byte, shown string, err error) {
	if strings.Index(source, "://") > 1 { // and not C://
		raw, err = registry.Download(ctx, source)
		return raw, secret.HideURL(source), err
	}
	raw, err = registry.ReadFile(source)
	if absolute, failed := filepath.Abs(source); failed == nil {
		source = absolute
	}
	return raw, source, err
}
