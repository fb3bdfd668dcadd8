package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
)

const noModels = `No models are configured. A model on your machine, served by Ollama:

  ollama pull qwen3
  OLLAMA_CONTEXT_LENGTH=32768 ollama serve

and in %s:

  {"models": {"local": {"baseURL": "http://127.0.0.1:11434/v1", "name": "qwen3",
                        "contextTokens": 32768}}}

Then run: acp-agent run --model local "What is in these folders?"
For other servers and for keys see acp-agent models --help.
`

// newModels returns the command that lists the configured models.
func newModels(set *settings) *cobra.Command {
	return set.accept(&cobra.Command{
		Use:   "models [NAME]",
		Short: "List the configured models, and what their servers offer",
		Args:  takes(0, 1, "one NAME", ""),

		ValidArgsFunction: set.completeModels,
		RunE: func(cmd *cobra.Command, args []string) error {
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
		},
	}, "json")
}
