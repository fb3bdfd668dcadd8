package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/usage"
)

// Model describes a configured model, and what its server says.
type Model struct {
	ID            string  `json:"id"`
	API           llm.API `json:"api"`
	BaseURL       string  `json:"baseURL"`
	Name          string  `json:"name"`
	ContextTokens int     `json:"contextTokens,omitempty"` // 0 if unknown
	// Key says where the key comes from: "none", "from a command", "from VARIABLE" or "from
	// VARIABLE, which is not set".
	Key string `json:"key"`

	Answer
}

// Answer is what a server says about its models. It is zero if the server was not asked.
type Answer struct {
	// Offers are the models that the server offers. Error says why the server did not list them.
	Offers []string `json:"offers,omitempty"`
	Error  string   `json:"error,omitempty"`
	// Unlisted is set if the server was asked and answers, but does not list its models.
	Unlisted bool `json:"unlisted,omitempty"`
}

// String describes the answer as the end of a sentence about the server, "" if it was not asked.
func (a Answer) String() string {
	switch {
	case a.Error != "":
		return "cannot be asked: " + a.Error
	case a.Unlisted:
		return "does not list its models"
	case a.Offers == nil:
		return ""
	case len(a.Offers) == 0:
		return "offers no models"
	}
	return "offers " + text.Line(strings.Join(a.Offers, ", "), maxOffers)
}

// Models describes the model with the given name, or all. Servers are asked if they are on
// this machine, or the model was named.
func Models(ctx context.Context, c config.Config, names []string) ([]Model, error) {
	ids := c.ModelIDs()
	for _, name := range names {
		if _, err := c.ModelsFrom(name); err != nil {
			return nil, usage.Errorf("%v", err)
		}
		ids = names
	}
	reports := make([]Model, len(ids))
	for i, id := range ids {
		client := newClient(c.ModelNamed(id))
		m := client.Model()
		reports[i] = Model{ID: id, API: m.API, BaseURL: m.BaseURL, Name: m.Name,
			Key: c.Models[id].DescribeKey()}
		if client.KnowsWindow() {
			reports[i].ContextTokens = m.ContextTokens
		}
		same := slices.IndexFunc(reports[:i],
			func(r Model) bool { return r.API == m.API && r.BaseURL == m.BaseURL })
		switch {
		case same >= 0:
			reports[i].Answer = reports[same].Answer
		case len(names) > 0, IsLocal(m.BaseURL):
			reports[i].Ask(ctx, client)
		}
	}
	return reports, ctx.Err()
}

// newClient returns a client that asks the server of a model about it.
func newClient(m model.Model) *llm.Client {
	return llm.New(llm.Model{API: m.API, BaseURL: m.BaseURL, Name: m.Name, Key: m.Key,
		Headers: m.Headers, ContextTokens: m.ContextTokens})
}

// Ask asks the server for its models, and for the context size of this one.
func (r *Model) Ask(ctx context.Context, client *llm.Client) {
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
	default:
		r.Offers = append([]string{}, offers...) // none is an answer, too
		slices.Sort(r.Offers)
	}
	client.AskWindow(ctx)
	if client.KnowsWindow() {
		r.ContextTokens = client.Model().ContextTokens
	}
}

// Lacking reports whether the server lists its models, without this one.
func (r *Model) Lacking() bool {
	return r.Offers != nil && !slices.Contains(r.Offers, r.Name) &&
		!slices.Contains(r.Offers, r.Name+":latest") // as Ollama calls it
}

// Unusable returns an error that names the models whose servers did not answer, or do not offer
// them.
func Unusable(reports []Model) error {
	var silent, without []string
	for _, r := range reports {
		switch {
		case r.Error != "":
			silent = append(silent, text.Plain(r.ID))
		case r.Lacking():
			without = append(without, text.Plain(r.ID))
		}
	}
	switch {
	case silent != nil:
		return fmt.Errorf("cannot ask the server of: %s; start it, or correct its entry in "+
			"models, as the reason above says", strings.Join(silent, ", "))
	case without != nil:
		return fmt.Errorf("the server does not offer: %s; correct name in the configuration file, "+
			"to one of those above", strings.Join(without, ", "))
	}
	return nil
}

// maxOffers is the longest list of a server's models that is printed, in characters. Some servers
// offer hundreds.
const maxOffers = 20_000

// PrintModels prints a table of the models, and what their servers offer.
func PrintModels(w io.Writer, reports []Model) error {
	table := terminal.NewTable(w, "NAME", "API", "SERVER", "MODEL", "CONTEXT", "KEY")
	for _, r := range reports {
		context := "unknown"
		if r.ContextTokens > 0 {
			context = strconv.Itoa(r.ContextTokens)
		}
		table.Row(text.Plain(r.ID), r.API,
			text.Plain(r.BaseURL), text.Plain(r.Name), context, r.Key)
	}
	err := table.Print()
	var told []string
	for _, r := range reports {
		if said := r.String(); said != "" && !slices.Contains(told, r.BaseURL) {
			told = append(told, r.BaseURL)
			err = cmp.Or(err,
				terminal.Say(w, "\n%s %s", text.Plain(r.BaseURL), text.Plain(said)))
		}
		if r.Lacking() {
			err = cmp.Or(err, terminal.Say(w, "It does not offer %q, the model of %s.",
				r.Name, text.Plain(r.ID)))
		}
	}
	return err
}

// IsLocal reports whether an address is on this machine.
func IsLocal(address string) bool {
	u, err := url.Parse(address)
	return err == nil && secret.IsLoopback(u.Hostname())
}

// ErrElsewhere is the error for a model on another machine that only the configuration file
// chooses. The file alone must not make a session send what it reads to another machine.
func ErrElsewhere(name string) error {
	return fmt.Errorf("the model %q is on another machine: let your editor start acp-agent "+
		"--model %s", name, name)
}
