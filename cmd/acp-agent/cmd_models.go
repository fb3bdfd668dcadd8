package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/inventory"
	"github.com/acp-agent/acp-agent/internal/usage"
)

const modelsHelp = `models lists the language models of the configuration file, which --model
accepts, and what the servers on this machine offer. A server elsewhere is
asked only if you name its model. It is sent the key, and nothing else.

A model on this machine, here with Ollama, and one that needs a key:

  {"models": {"local": {"baseURL": "http://127.0.0.1:11434/v1",
                        "name": "qwen3"},
              "big": {"api": "anthropic", "name": "claude-sonnet-4-5",
                      "keyCommand": ["pass", "show", "anthropic"]}}}

  api            "openai" (the default) for chat completions, which Ollama,
                 llama.cpp, vLLM, LM Studio and OpenRouter speak too,
                 "responses" for those of OpenAI, or "anthropic" for messages
  baseURL        the address of the server, with a query if it wants one.
                 Default with a key: that of OpenAI or Anthropic
  name           the server's name for the model (default the name in the
                 configuration)
  keyEnv         an environment variable that has the key. The key itself is
                 never stored
  keyCommand     a program with its arguments that prints the key; it is not
                 run by a shell. It runs when the first prompt needs the key,
                 and again if the server rejects it. A path is relative to the
                 configuration file
  headers        further headers of requests. $NAME in a value stands for an
                 environment variable
  contextTokens  how many tokens fit into a request and its answer (default:
                 what a server on this machine or in a private network says,
                 otherwise 128000). It must not be more than the server is set
                 to: for Ollama that is OLLAMA_CONTEXT_LENGTH, and it silently
                 drops what is too long
  maxTokens      how long an answer may be
  fallback       another of these models, which answers if the server of this
                 one cannot
  textOnly       true if the model does not accept images
  pdf            true or false if the model takes PDF documents or not
                 (default: as far as known)
  prices         what a million tokens cost, to show the cost of a session:
                 {"input": 3, "cached": 0.3, "output": 15, "currency": "USD"}

In a session, the user can switch to another of these models. The exit status
is 1 if a server that was asked did not answer.`

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
func newModels(s streams, set *settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models [NAME]",
		Short: "List the configured models, and what their servers offer",
		Long:  modelsHelp,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Errorf("%s takes only one NAME (got %q as well)", words(cmd), args[1])
			}
			return nil
		},
		ValidArgsFunction: func(
			_ *cobra.Command, args []string, _ string,
		) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return set.config.ModelIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			reports, err := inventory.Models(cmd.Context(), set.config, args)
			switch {
			case err != nil:
				return err
			case asJSON:
				err = writeJSON(s.out, map[string]any{"models": reports})
			case len(reports) == 0:
				_, err := fmt.Fprintf(s.out, noModels,
					cmp.Or(set.config.Path, config.DefaultPath(), "the configuration file"))
				return err
			default:
				err = inventory.PrintModels(s.out, reports)
			}
			return cmp.Or(err, inventory.Unreachable(reports))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
