package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/text"
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
				return usagef("%s takes only one NAME (got %q as well)", words(cmd), args[1])
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
			reports, err := set.reportModels(cmd.Context(), args)
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
				err = printModels(s, reports)
			}
			return cmp.Or(err, unreachable(reports))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// modelReport describes a configured model.
type modelReport struct {
	ID            string  `json:"id"`
	API           llm.API `json:"api"`
	BaseURL       string  `json:"baseURL"`
	Name          string  `json:"name"`
	ContextTokens int     `json:"contextTokens,omitempty"` // 0 if unknown
	// Key says where the key comes from: "none", "from a command", "from VARIABLE" or "from
	// VARIABLE, which is not set".
	Key string `json:"key"`
	// Offers are the models that the server offers, nil if it was not asked. Error says why the
	// server did not list them.
	Offers []string `json:"offers,omitempty"`
	Error  string   `json:"error,omitempty"`
	// Unlisted is set if the server was asked and answers, but does not list its models.
	Unlisted bool `json:"unlisted,omitempty"`
}

// reportModels describes the model with the given name, or all. Servers are asked if they are on
// this machine, or the model was named.
func (set *settings) reportModels(ctx context.Context, names []string) ([]modelReport, error) {
	ids := set.config.ModelIDs()
	for _, name := range names {
		if _, err := set.config.ModelsFrom(name); err != nil {
			return nil, usagef("%v", err)
		}
		ids = names
	}
	reports := make([]modelReport, len(ids))
	for i, id := range ids {
		client := llm.New(set.config.ModelNamed(id))
		m := client.Model()
		reports[i] = modelReport{ID: id, API: m.API, BaseURL: m.BaseURL, Name: m.Name,
			Key: set.config.Models[id].DescribeKey()}
		if client.KnowsWindow() {
			reports[i].ContextTokens = m.ContextTokens
		}
		same := slices.IndexFunc(reports[:i],
			func(r modelReport) bool { return r.API == m.API && r.BaseURL == m.BaseURL })
		switch u, err := url.Parse(m.BaseURL); {
		case same >= 0:
			known := reports[same]
			reports[i].Offers, reports[i].Error, reports[i].Unlisted = known.Offers, known.Error,
				known.Unlisted
		case len(names) > 0, err == nil && secret.IsLoopback(u.Hostname()):
			reports[i].ask(ctx, client)
		}
	}
	return reports, nil
}

// ask asks the server for its models, and for the context size of this one.
func (r *modelReport) ask(ctx context.Context, client *llm.Client) {
	const wait = 5 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		fmt.Errorf("the server has not answered within %v", wait))
	defer cancel()
	offers, err := client.List(ctx)
	failed, _ := errors.AsType[*llm.Error](err)
	switch {
	case failed != nil && (failed.Status == http.StatusNotFound ||
		failed.Status == http.StatusMethodNotAllowed || failed.Status == http.StatusNotImplemented):
		r.Unlisted = true
	case err != nil:
		r.Error = err.Error()
		return
	}
	slices.Sort(offers)
	client.AskWindow(ctx)
	if r.Offers = offers; client.KnowsWindow() {
		r.ContextTokens = client.Model().ContextTokens
	}
}

// offered reports whether the server offers the model, as far as it tells.
func (r *modelReport) offered() bool {
	return r.Unlisted || slices.Contains(r.Offers, r.Name) ||
		slices.Contains(r.Offers, r.Name+":latest") // as Ollama calls it
}

// unreachable returns an error that names the models whose servers did not answer.
func unreachable(reports []modelReport) error {
	var names []string
	for _, r := range reports {
		if r.Error != "" {
			names = append(names, text.Plain(r.ID))
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("cannot reach the server of: %s", strings.Join(names, ", "))
}

// maxOffers is the longest list of a server's models that is printed, in characters. Some servers
// offer hundreds.
const maxOffers = 20_000

func printModels(s streams, reports []modelReport) error {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tAPI\tSERVER\tMODEL\tCONTEXT\tKEY")
	for _, r := range reports {
		context := "unknown"
		if r.ContextTokens > 0 {
			context = strconv.Itoa(r.ContextTokens)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", text.Plain(r.ID), r.API,
			text.Plain(r.BaseURL), text.Plain(r.Name), context, r.Key)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var told []string
	for _, r := range reports {
		if r.Offers == nil && r.Error == "" && !r.Unlisted {
			continue
		}
		if !slices.Contains(told, r.BaseURL) {
			told = append(told, r.BaseURL)
			said := "offers " + text.Line(strings.Join(r.Offers, ", "), maxOffers)
			switch {
			case r.Error != "":
				said = "cannot be asked: " + r.Error
			case r.Unlisted:
				said = "does not list its models"
			case len(r.Offers) == 0:
				said = "offers no models"
			}
			if _, err := fmt.Fprintf(s.out, "\n%s %s\n", text.Plain(r.BaseURL),
				text.Plain(said)); err != nil {
				return err
			}
		}
		if r.Error == "" && !r.offered() {
			if _, err := fmt.Fprintf(s.out, "It does not offer %q, the model of %s.\n", r.Name,
				text.Plain(r.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}
