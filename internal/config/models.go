package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// Model describes a language model.
type Model struct {
	API        model.API `json:"api"`
	BaseURL    string    `json:"baseURL"`
	Name       *string   `json:"name"` // nil for the ID
	KeyEnv     string    `json:"keyEnv"`
	KeyCommand []string  `json:"keyCommand"`
	// Headers have values in which $NAME stands for an environment variable.
	Headers       map[string]string `json:"headers"`
	ContextTokens *int              `json:"contextTokens"`
	MaxTokens     *int              `json:"maxTokens"`
	// InstructionTokens and SilenceMinutes are 0 for the default.
	InstructionTokens int           `json:"instructionTokens"`
	SilenceMinutes    float64       `json:"silenceMinutes"`
	TextOnly          bool          `json:"textOnly"`
	PDF               *bool         `json:"pdf"`
	Fallback          string        `json:"fallback"` // the ID of another model
	Prices            *pricesConfig `json:"prices"`

	Restriction
}

// pricesConfig has the prices of a million tokens.
type pricesConfig struct {
	Input    float64  `json:"input"`
	Cached   *float64 `json:"cached"` // nil for the price of input
	Output   float64  `json:"output"`
	Currency *string  `json:"currency"` // nil for USD
}

// prices returns the prices with their defaults, or nil.
func (p *pricesConfig) prices() *model.Prices {
	if p == nil {
		return nil
	}
	prices := &model.Prices{Input: p.Input, Cached: p.Input, Output: p.Output, Currency: "USD"}
	override(&prices.Cached, p.Cached)
	override(&prices.Currency, p.Currency)
	return prices
}

// check checks what decoding does not.
func (p *pricesConfig) check() error {
	prices := p.prices()
	switch {
	case prices == nil:
		return nil
	case min(prices.Input, prices.Cached, prices.Output) < 0:
		return errors.New("prices must not be negative")
	case !currency().MatchString(prices.Currency):
		return errors.New("the currency of prices must be a code such as USD or EUR")
	}
	return nil
}

// currency matches codes of ISO 4217.
var currency = text.Pattern(`^[A-Z]{3}$`)

// Check checks what decoding does not. Its errors do not quote values, because a user may have put
// a secret key there by mistake.
func (m Model) Check(id string) error {
	hasKey := m.KeyEnv != "" || m.KeyCommand != nil
	switch {
	case id == "" || strings.ContainsFunc(id,
		func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) ||
		strings.HasPrefix(id, "-"):
		return fmt.Errorf(
			"%q is not a valid name for a model: it must not be empty, have spaces or begin with "+
				"a dash", id)
	case m.Name != nil && *m.Name == "":
		return fmt.Errorf(
			"name is empty: give the server's name for the model, or leave it out if that is %q",
			id)
	case bool(m.SandboxFallback):
		return errors.New("sandboxFallback is for agents and MCP servers: the commands of a " +
			"model fail where there is no sandbox")
	case m.KeyEnv != "" && m.KeyCommand != nil:
		return errors.New("has both keyEnv and keyCommand: give one of them")
	case m.KeyEnv != "" && !process.IsVariable(m.KeyEnv):
		return errors.New(
			"keyEnv must be the name of an environment variable that has the key, such as " +
				"OPENAI_API_KEY, not the key itself")
	case m.ContextTokens != nil && *m.ContextTokens < 1, m.MaxTokens != nil && *m.MaxTokens < 1:
		return errors.New("contextTokens and maxTokens must be at least 1")
	case m.InstructionTokens < 0, m.SilenceMinutes < 0, m.SilenceMinutes > 24*60:
		return errors.New("instructionTokens and silenceMinutes must not be negative, and a " +
			"silence not longer than a day")
	case m.ContextTokens != nil && m.MaxTokens != nil && *m.MaxTokens >= *m.ContextTokens:
		return errors.New(
			"maxTokens, the length of an answer, must be less than contextTokens, which it is " +
				"part of")
	}
	if err := cmp.Or(checkCommand("keyCommand", m.KeyCommand, `["pass", "show", "openai"]`),
		m.checkHeaders(), m.Prices.check()); err != nil {
		return err
	}
	switch {
	case m.BaseURL != "":
		return m.checkURL(hasKey || len(m.headerVariables()) > 0)
	case !hasKey:
		return errors.New("set baseURL (for example http://127.0.0.1:11434/v1 for Ollama), " +
			"or keyEnv or keyCommand to use the provider's own API")
	}
	return nil
}

// checkURL checks the address of a server. hasKey is set if the server gets a key.
func (m Model) checkURL(hasKey bool) error {
	u, err := url.Parse(m.BaseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New(
			"baseURL must be an address like http://127.0.0.1:11434/v1 or " +
				"https://api.example.com/v1")
	case u.User != nil:
		return errors.New(
			"baseURL must not have a user or password: name an environment variable with the key " +
				"as keyEnv")
	case u.Fragment != "":
		return errors.New("baseURL must end with a path or a query, without #")
	case slices.ContainsFunc(slices.Collect(maps.Keys(u.Query())), secret.IsCredential):
		return errors.New("baseURL must not have a key in its query: set keyEnv, or a header")
	case u.Scheme == "http" && hasKey && !secret.IsLoopback(u.Hostname()):
		return fmt.Errorf(
			"the key would be sent to %s unencrypted: use https, or reach the server through a "+
				"tunnel to 127.0.0.1", u.Host)
	case endpointPath().MatchString(u.Path):
		return fmt.Errorf("baseURL must not end with %s, which is added for each request",
			endpointPath().FindString(u.Path))
	case m.API == model.Anthropic && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return errors.New("baseURL must not end with /v1, which is added for the api anthropic")
	}
	return nil
}

// endpointPath matches the paths that a client adds to the address of a server.
var endpointPath = text.Pattern(`/(chat/completions|responses|messages)/?$`)

// ModelIDs returns the IDs of the configured models, sorted.
func (c Config) ModelIDs() []string { return slices.Sorted(maps.Keys(c.Models)) }

// KeyVariables returns the names of the environment variables with the models' keys and the secrets
// of clients. No process that acp-agent starts gets them, except an agent, which may need the same
// variables.
func (c Config) KeyVariables() []string {
	var names []string
	for _, m := range c.Models {
		if m.KeyEnv != "" {
			names = append(names, m.KeyEnv)
		}
		names = append(names, m.headerVariables()...)
	}
	for _, s := range c.MCPServers {
		if s.ClientSecretEnv != "" {
			names = append(names, s.ClientSecretEnv)
		}
	}
	return names
}

// ModelsFrom returns all configured models, beginning with the one with this ID.
func (c Config) ModelsFrom(id string) ([]model.Model, error) {
	if len(c.Models) == 0 {
		return nil, fmt.Errorf(
			"there is no model %q, because none is configured: acp-agent models explains how to "+
				"add one", id)
	}
	if _, known := c.Models[id]; !known {
		return nil, fmt.Errorf("unknown model %q%s", id,
			cmp.Or(text.Meant(id, text.Same(c.ModelIDs())), "; configured models: "+
				strings.Join(c.ModelIDs(), ", ")+
				" (acp-agent models --help explains how to add one)"))
	}
	models := []model.Model{c.ModelNamed(id)}
	for _, other := range c.ModelIDs() {
		if other != id {
			models = append(models, c.ModelNamed(other))
		}
	}
	return models, nil
}

// ModelNamed returns the configured model with this ID.
func (c Config) ModelNamed(id string) model.Model {
	m := c.Models[id]
	configured := model.Model{ID: id, API: m.API, BaseURL: m.BaseURL,
		Name: id, Key: m.key(filepath.Dir(c.Path), c.KeyVariables()), TextOnly: m.TextOnly,
		PDF: m.PDF, Headers: m.headers(), Fallback: m.Fallback, Prices: m.Prices.prices(),
		InstructionTokens: m.InstructionTokens,
		Silence:           time.Duration(m.SilenceMinutes * float64(time.Minute))}
	override(&configured.Name, m.Name)
	override(&configured.ContextTokens, m.ContextTokens)
	override(&configured.MaxTokens, m.MaxTokens)
	return configured
}
