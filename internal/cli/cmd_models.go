package cli

import (
	"cmp"
	_ "embed"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
)

// noModels says how to configure a model, with %s for the file.
//
//go:embed models_none.txt
var noModels string

func newModels(set *settings) *cobra.Command {
	cmd := set.newCommand("models", takes(0, 1, "one NAME", ""), needsConfig,
		flags{"json": &set.json},
		func(cmd *cobra.Command, args []string) error {
			reports, err := inventory.Models(cmd.Context(), set.config, args)
			switch {
			case err != nil:
				return err
			case set.json:
				err = writeJSON(set.out, map[string]any{"models": reports})
			case len(reports) == 0:
				_, err := fmt.Fprintf(set.out, noModels,
					cmp.Or(set.config.Path, config.DefaultPath(), "the configuration file"))
				return err
			default:
				err = inventory.PrintModels(set.out, reports)
			}
			return cmp.Or(err, inventory.Unusable(reports))
		})
	cmd.ValidArgsFunction = set.completeModels
	return cmd
}
