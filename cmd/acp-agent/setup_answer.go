package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/secret"
)

// An answerer is an agent or a model that can answer. Without a name it is neither.
type answerer struct {
	title string
	// One of agent and model is its name in the configuration.
	agent, model string
	// define, if not nil, adds what the configuration must say about it besides its name.
	define func(*config.Text)
	hint   string // a message to the user, or ""
}

// neither stands for neither an agent nor a model.
var neither = answerer{title: "neither: acp-agent answers commands such as /search"}

// addAnswer adds the agent or model that a flag names or the user chooses to the configuration. It
// returns the name of the agent, or "".
func (o *setup) addAnswer(ctx context.Context) (string, error) {
	c := o.set.config
	chosen, err := o.chooseAnswer(ctx)
	if err != nil {
		return "", err
	}
	if chosen == nil {
		return c.Agent, nil
	}
	for _, s := range []struct{ key, old, new string }{
		{"agent", c.Agent, chosen.agent}, {"model", c.Model, chosen.model},
	} {
		if s.old != s.new { // "" stays in the file, and with it the comments
			o.new.Set(s.new, s.key)
		}
	}
	if chosen.define != nil {
		chosen.define(o.new)
	}
	if chosen.hint != "" {
		o.tell("%s", chosen.hint)
	}
	return chosen.agent, o.askSandbox(ctx, chosen)
}

// askSandbox lets the user restrict an agent, if that is possible here and no flag does it.
func (o *setup) askSandbox(ctx context.Context, a *answerer) error {
	p, known := profiles.Find(o.set.config.Profiles(), a.agent)
	if !known && a.define == nil || a.agent == "" || o.user == nil || o.set.sandbox != "" ||
		(sandbox.Settings{}).Available() != nil {
		return nil
	}
	modes := []sandbox.Mode{sandbox.Off, sandbox.Write, sandbox.Strict}
	i, err := o.choose(ctx, "What may the agent do by itself, without asking acp-agent?", []string{
		"everything that you can",
		"change files only in the session's folders, a temporary directory and its own state",
		"also read only there and in directories of the system",
	}, slices.Index(modes, p.Sandbox.Mode))
	if err == nil && modes[i] != p.Sandbox.Mode {
		o.new.Set(modes[i].String(), "agents", a.agent, "sandbox")
	}
	return err
}

// chooseAnswer returns the chosen answerer, or nil to keep the current one.
func (o *setup) chooseAnswer(ctx context.Context) (*answerer, error) {
	named := o.flags.Changed("agent") || o.flags.Changed("model")
	switch {
	case len(o.command) > 0 && named:
		return nil, usagef("--agent and --model cannot be used with a command after --")
	case len(o.command) > 0:
		a := o.agentOfCommand()
		return &a, nil
	case o.set.model != "":
		return o.namedModel(ctx)
	case o.set.agent != "":
		list, _ := o.set.agents()
		p, known := profiles.Find(list, o.set.agent)
		if !known {
			_, _, err := o.set.agentCommand(o.set.agent, nil) // says which are known
			return nil, usagef("--agent: %v", err)
		}
		a := o.answererOf(p)
		return &a, nil
	case named:
		return &neither, nil
	case o.user == nil && o.server != "":
		return nil, o.unusedServer(ctx)
	case o.user == nil:
		return nil, nil
	}
	return o.askAnswer(ctx)
}

// unusedServer returns the error for --server if nobody can be asked for a model.
func (o *setup) unusedServer(ctx context.Context) error {
	models, err := o.findModels(ctx)
	if err != nil {
		return err
	}
	return usagef("--server needs --model with one of the server's models: %s", namesOf(models))
}

// namesOf lists the names of models.
func namesOf(models []answerer) string {
	names := []string{"none"}
	for i, a := range models {
		names = append(names[:i], a.model)
	}
	return strings.Join(names, ", ")
}

// askAnswer lets the user choose among the agents and models that were found.
func (o *setup) askAnswer(ctx context.Context) (*answerer, error) {
	var all []answerer
	list, err := o.set.agents()
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if reportAgent(p, o.set.config).Found != "" {
			all = append(all, o.answererOf(p))
		}
	}
	models, err := o.findModels(ctx)
	if err != nil {
		return nil, err
	}
	all = append(append(all, models...), neither)
	now := slices.IndexFunc(all, func(a answerer) bool {
		return a.agent == o.set.config.Agent && a.model == o.set.config.Model
	})
	if o.set.config.Path != "" && o.old == nil || now < 0 {
		now = 0
	}
	if len(all) == 1 {
		o.tell("No agent was found in PATH, and no model server at the usual ports. acp-agent " +
			"agents lists the known agents; acp-agent setup --help tells how to name others.")
	}
	titles := make([]string, len(all))
	for i, a := range all {
		titles[i] = a.title
	}
	i, err := o.choose(ctx, "What should answer in your editor?", titles, now)
	return &all[i], err
}

// answererOf returns a known agent. If editors started from a desktop may not find its program, its
// path is written down.
func (o *setup) answererOf(p profiles.Profile) answerer {
	r := reportAgent(p, o.set.config)
	a := answerer{title: fmt.Sprintf("%s (%s)", p.Title, r.Found), agent: p.Name}
	switch {
	case r.Found == "":
		a.hint = fmt.Sprintf("%s was not found in PATH.", p.Start.Command)
		if p.Start.Install != "" {
			a.hint += " To install it: " + p.Start.Install
		}
	case !filepath.IsAbs(p.Start.Command) && !inDesktopPath(r.Found) && len(p.Start.Env) == 0:
		a.define = func(c *config.Text) {
			c.Set(r.Found, "agents", p.Name, "command")
			if r.Source == "registry" { // what is configured replaces it
				c.Set(slices.Concat([]string{}, p.Start.Args), "agents", p.Name, "args")
			}
		}
	}
	return a
}

// agentOfCommand returns the agent that the command after "--" starts: a known agent with that
// command, otherwise an agent with the name of the program.
func (o *setup) agentOfCommand() answerer {
	path, args := o.command[0], o.command[1:]
	if config.IsPath(path) {
		if full, err := filepath.Abs(path); err == nil {
			path = full
		}
	}
	list, _ := o.set.agents()
	p, known := profiles.Match(list, process.Command{Path: path, Args: args})
	if known && p.Start.Command == path && slices.Equal(p.Start.Args, args) {
		return o.answererOf(p)
	}
	name := profiles.ProgramName(path)
	a := o.answererOf(profiles.Profile{Name: name, Title: name, Start: profiles.Start{Command: path}})
	whole := a.define
	a.define = func(c *config.Text) {
		c.Set(path, "agents", name, "command")
		c.Set(args, "agents", name, "args")
		if whole != nil {
			whole(c)
		}
	}
	return a
}

// A localServer is a server on this machine that may offer models.
type localServer struct{ name, url string }

// servers returns the server of --server, or the usual ones.
func (o *setup) servers() ([]localServer, error) {
	if o.server == "" {
		return []localServer{
			{"Ollama", ollama}, {"LM Studio", "http://127.0.0.1:1234/v1"},
			{"llama.cpp", "http://127.0.0.1:8080/v1"}, {"vLLM", "http://127.0.0.1:8000/v1"},
		}, nil
	}
	if err := (config.Model{BaseURL: o.server}).Check("model"); err != nil {
		return nil, usagef("--server: %v", err)
	}
	if !isLocal(o.server) {
		return nil, usagef("--server %s is on another machine: see acp-agent models --help", o.server)
	}
	return []localServer{{"the server", o.server}}, nil
}

// ollama is where Ollama serves models.
const ollama = "http://127.0.0.1:11434/v1"

// isLocal reports whether an address is on this machine.
func isLocal(address string) bool {
	u, err := url.Parse(address)
	return err == nil && secret.IsLoopback(u.Hostname())
}

// findModels returns the configured models on this machine whose server answers, and those that
// other servers on this machine offer.
func (o *setup) findModels(ctx context.Context) ([]answerer, error) {
	servers, err := o.servers()
	if err != nil {
		return nil, err
	}
	configured, err := o.set.reportModels(ctx, nil)
	if err != nil {
		return nil, err
	}
	found := make([]modelReport, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			client := llm.New(llm.Model{ID: s.name, BaseURL: s.url})
			defer client.Close()
			found[i].ask(ctx, client)
		})
	}
	asking.Wait()
	if o.server != "" && found[0].Error != "" {
		return nil, usagef("--server: %s cannot be asked for its models: %s", o.server, found[0].Error)
	}
	var all []answerer
	for _, r := range configured {
		if isLocal(r.BaseURL) && r.Error == "" {
			all = append(all, answerer{title: fmt.Sprintf("model %s at %s", r.Name, r.BaseURL),
				model: r.ID})
		}
	}
	for i, s := range servers {
		offers := found[i].Offers
		if found[i].Unlisted && o.set.model != "" {
			offers = []string{o.set.model} // which may be right
		}
		for _, name := range offers {
			if !slices.ContainsFunc(configured, func(r modelReport) bool {
				return r.Name == name && r.BaseURL == s.url
			}) {
				all = append(all, o.offeredModel(s, name))
			}
		}
	}
	return all, nil
}

// offeredModel returns a model that a server offers, with the same name in the configuration.
func (o *setup) offeredModel(s localServer, name string) answerer {
	a := answerer{title: fmt.Sprintf("model %s, offered by %s at %s", name, s.name, s.url),
		model: name}
	a.define = func(c *config.Text) { c.Set(s.url, "models", name, "baseURL") }
	if s.url == ollama {
		const context = 32768
		a.hint = fmt.Sprintf("Start Ollama with OLLAMA_CONTEXT_LENGTH=%d: it silently drops "+
			"what does not fit.", context)
		a.define = func(c *config.Text) {
			c.Set(ollama, "models", name, "baseURL")
			c.Set(context, "models", name, "contextTokens")
		}
	}
	return a
}

// namedModel returns the model of --model, which is configured or offered by a server on this
// machine.
func (o *setup) namedModel(ctx context.Context) (*answerer, error) {
	name := o.set.model
	if m, known := o.set.config.Models[name]; known {
		if !isLocal(m.BaseURL) {
			return nil, usagef("%v", errModelElsewhere(name))
		}
		return &answerer{model: name}, nil
	}
	models, err := o.findModels(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range models {
		if a.model == name || a.model == name+":latest" {
			return &a, nil
		}
	}
	return nil, usagef("--model: no server on this machine offers %q; found: %s", name,
		namesOf(models))
}
