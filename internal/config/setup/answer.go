package setup

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/llm"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/usage"
)

// An answerer is an agent or a model that can answer. Without a name it is neither.
type answerer struct {
	title string
	// One of agent and model is its name in the configuration.
	agent, model string
	settings     []setting // what the configuration must say about it besides its name
	hint         string    // a message to the user, or ""
}

// A setting is a value for a place in the configuration.
type setting struct {
	value any
	path  []string
}

// neither stands for neither an agent nor a model.
var neither = answerer{title: "explore: acp-agent itself answers commands such as /search",
	hint: "acp-agent then answers commands only, such as /search; /help lists them. For more, " +
		"install an agent (acp-agent agents lists them, and acp-agent doctor NAME says how), or " +
		"a model as acp-agent models explains, and run acp-agent setup again."}

// addAnswer adds the agent or model that a flag names or the user chooses to the configuration. It
// returns the name of the agent, or "".
func (o *run) addAnswer(ctx context.Context) (string, error) {
	c := o.config
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
	for _, s := range chosen.settings {
		o.new.Set(s.value, s.path...)
	}
	if chosen.hint != "" {
		o.tell("%s", chosen.hint)
	}
	return chosen.agent, o.askPolicy(ctx, chosen)
}

// A policy is an answer to how much an agent may do.
type policy struct {
	option
	rules bool // acp-agent remembers what the user always allows
	mode  sandbox.Mode
}

// askPolicy lets the user choose how much an agent may do, as far as neither the configuration nor
// a flag says it.
func (o *run) askPolicy(ctx context.Context, a *answerer) error {
	p, known := profiles.Find(o.config.Profiles(), a.agent)
	if a.agent == "" || o.user == nil {
		return nil
	}
	all := o.policies(p, (known || a.settings != nil) &&
		o.Sandbox == "" && (sandbox.Settings{}).Available() == nil)
	if len(all) < 2 {
		return nil
	}
	options, initial := make([]option, len(all)), 0
	for i, one := range all {
		options[i] = one.option
		if o.config.Agent != "" && one.mode == p.Sandbox.Mode && !one.rules {
			initial = i // as it is now
		}
	}
	i, err := o.choose(ctx, "What may the agent do? If you are not sure, choose 1.",
		options, initial, nil)
	if err != nil {
		return err
	}
	if all[i].rules {
		o.new.Set(map[string]any{}, "permissions")
	}
	if all[i].mode == p.Sandbox.Mode {
		return nil
	}
	o.new.Set(all[i].mode.String(), "agents", a.agent, "sandbox")
	if all[i].mode == sandbox.Off || p.Sandbox.Hosts.Limited || p.State.Hosts == nil {
		return nil
	}
	return o.askHosts(ctx, p)
}

// policies returns what can be chosen for an agent, the recommended one first.
func (o *run) policies(p profiles.Profile, sandboxed bool) (all []policy) {
	asks := o.config.Permissions == nil && !o.Rules && !p.NeverAsks
	now := p.Sandbox.Mode
	if asks {
		all = append(all, policy{option{"acp-agent", "(recommended) what you allow it: when you " +
			"answer a question with \"Always\", acp-agent remembers exactly what you saw, until " +
			"you call acp-agent permissions revoke"}, true, now})
	} else {
		may := "everything that you can, as without acp-agent"
		if o.Rules || o.config.Permissions != nil {
			may = "what your rules allow it, and what you allow when it asks"
		}
		all = append(all, policy{option{"off", "(recommended) " + may}, false, sandbox.Off})
	}
	if sandboxed {
		all = append(all, policy{option{"write", "as 1, in a sandbox: it changes files only in " +
			"the session's folders, a temporary directory and its own state. Some agents cannot " +
			"work in one"}, asks, sandbox.Write},
			policy{option{"strict", "as 2, and it reads only there and in directories of the " +
				"system"}, asks, sandbox.Strict})
	}
	if asks {
		all = append(all, policy{option{"agent", "what it decides itself: it remembers " +
			"\"Always\" in its own way, which may allow more"}, false, now})
	}
	return all
}

// askHosts lets the user restrict an agent to the hosts that it needs itself.
func (o *run) askHosts(ctx context.Context, p profiles.Profile) error {
	i, err := o.choose(ctx, "Which hosts may the agent, and what it starts, connect to? More can "+
		"be added in sandboxHosts, such as other providers of models and registries of packages; "+
		"the session names what is missing.", []option{{"all", "all"},
		{"only", "only those that it needs itself: " + strings.Join(p.State.Hosts, ", ")},
	}, 0, nil)
	if err == nil && i == 1 {
		o.new.Set(p.State.Hosts, "agents", p.Name, "sandboxHosts")
	}
	return err
}

// chooseAnswer returns the chosen answerer, or nil to keep the current one.
func (o *run) chooseAnswer(ctx context.Context) (*answerer, error) {
	switch {
	case len(o.Command) > 0 && o.Chosen:
		return nil, usage.Errorf("--agent and --model cannot be used with a command after --")
	case len(o.Command) > 0:
		return new(o.agentOfCommand()), nil
	case o.Model != "":
		return o.namedModel(ctx)
	case o.Agent != "":
		list, err := o.Agents()
		p, known := profiles.Find(list, o.Agent)
		if !known {
			return nil, usage.Errorf("--agent: %v",
				cmp.Or(err, inventory.UnknownAgent(o.Agent, list)))
		}
		return new(o.answererOf(p)), nil
	case o.Chosen:
		return &neither, nil
	case o.user == nil:
		return nil, nil
	}
	return o.askAnswer(ctx)
}

// askAnswer lets the user choose among the agents and models that were found.
func (o *run) askAnswer(ctx context.Context) (*answerer, error) {
	var all, halves []answerer // halves lack the program that makes them speak ACP
	list, err := o.Agents()
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if inventory.ReportAgent(p, o.config).Found != "" {
			all = append(all, o.answererOf(p))
		} else if _, err := exec.LookPath(inventory.WithoutAdapter(p)); err == nil {
			halves = append(halves, o.answererOf(p))
		}
	}
	models, err := o.findModels(ctx, usualServers)
	if err != nil {
		return nil, err
	}
	all = append(slices.Concat(all, models, halves), neither)
	now := slices.IndexFunc(all, func(a answerer) bool {
		return a.agent == o.config.Agent && a.model == o.config.Model
	})
	if o.config.Agent+o.config.Model == "" || now < 0 {
		now = 0 // such as an agent that was installed since
	}
	if len(all) == 1 {
		fmt.Fprintln(o.dialog)
		o.tell("No agent was found in PATH, and no model server at the usual ports. If you have one, " +
			"acp-agent setup --help tells how to name it.")
		return &neither, nil
	}
	options := make([]option, len(all))
	for i, a := range all {
		options[i] = option{cmp.Or(a.agent, a.model, explore.Kind), a.title}
	}
	i, err := o.choose(ctx, "Which agent should answer?", options, now, func(line string) string {
		for _, p := range list {
			if strings.EqualFold(p.Name, line) || strings.EqualFold(p.Title, line) {
				return fmt.Sprintf("%s is not installed: %s, then run setup again.", p.Title,
					cmp.Or(p.Start.Install, "install it"))
			}
		}
		return ""
	})
	return &all[i], err
}

// answererOf returns a known agent. If editors started from a desktop may not find its program, its
// path is written down.
func (o *run) answererOf(p profiles.Profile) answerer {
	r := inventory.ReportAgent(p, o.config)
	a := answerer{title: fmt.Sprintf("%s (%s)", p.Title, r.Found), agent: p.Name}
	switch {
	case r.Found == "":
		a.title = fmt.Sprintf("%s, after %s", p.Title, cmp.Or(p.Start.Install, "its installation"))
		a.hint = fmt.Sprintf("%s was not found in PATH.", p.Start.Command)
		if p.Start.Install != "" {
			a.hint += " To install it: " + p.Start.Install
		}
	case !filepath.IsAbs(p.Start.Command) && !inventory.InDesktopPath(r.Found) &&
		len(p.Start.Env) == 0:
		a.settings = []setting{{r.Found, []string{"agents", p.Name, "command"}}}
		if r.Source == "registry" { // what is configured replaces it
			a.settings = append(a.settings, setting{slices.Concat([]string{}, p.Start.Args),
				[]string{"agents", p.Name, "args"}})
		}
	}
	return a
}

// agentOfCommand returns the agent that the command after "--" starts: a known agent with that
// command, otherwise an agent with the name of the program.
func (o *run) agentOfCommand() answerer {
	path, args := o.Command[0], o.Command[1:]
	if config.IsPath(path) {
		if full, err := filepath.Abs(path); err == nil {
			path = full
		}
	}
	list, _ := o.Agents()
	p, known := profiles.Match(list, process.Command{Path: path, Args: args})
	if known && p.Start.Command == path && slices.Equal(p.Start.Args, args) {
		return o.answererOf(p)
	}
	name := profiles.ProgramName(path)
	a := o.answererOf(profiles.Profile{Name: name, Title: name,
		Start: profiles.Start{Command: path}})
	a.settings = append([]setting{{path, []string{"agents", name, "command"}},
		{args, []string{"agents", name, "args"}}}, a.settings...)
	return a
}

// A localServer is a server on this machine that may offer models.
type localServer struct{ name, url string }

// usualServers are the servers that models usually have.
var usualServers = []localServer{
	{"Ollama", ollama}, {"LM Studio", "http://127.0.0.1:1234/v1"},
	{"llama.cpp", "http://127.0.0.1:8080/v1"}, {"vLLM", "http://127.0.0.1:8000/v1"},
}

// ollama is where Ollama serves models.
const ollama = "http://127.0.0.1:11434/v1"

// findModels returns the configured models on this machine whose server answers, and those that
// other servers on this machine offer.
func (o *run) findModels(ctx context.Context, servers []localServer) ([]answerer, error) {
	configured, err := inventory.Models(ctx, o.config, nil)
	if err != nil {
		return nil, err
	}
	found := make([]inventory.Model, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			client := llm.New(llm.Model{BaseURL: s.url})
			defer client.Close()
			found[i].Ask(ctx, client)
		})
	}
	asking.Wait()
	var all []answerer
	for _, r := range configured {
		if inventory.IsLocal(r.BaseURL) && r.Error == "" {
			all = append(all, answerer{title: fmt.Sprintf("model %s at %s", r.Name, r.BaseURL),
				model: r.ID})
		}
	}
	for i, s := range servers {
		offers := found[i].Offers
		if found[i].Unlisted && o.Model != "" {
			offers = []string{o.Model} // which may be right
		}
		for _, name := range offers {
			if !slices.ContainsFunc(configured, func(r inventory.Model) bool {
				return r.Name == name && r.BaseURL == s.url
			}) {
				all = append(all, o.offeredModel(s, name))
			}
		}
	}
	return all, nil
}

// offeredModel returns a model that a server offers, with the same name in the configuration.
func (o *run) offeredModel(s localServer, name string) answerer {
	a := answerer{title: fmt.Sprintf("model %s, offered by %s at %s", name, s.name, s.url),
		model: name}
	a.settings = []setting{{s.url, []string{"models", name, "baseURL"}}}
	if s.url == ollama {
		const context = 32768
		a.hint = fmt.Sprintf("Start Ollama with OLLAMA_CONTEXT_LENGTH=%d: it silently drops "+
			"what does not fit.", context)
		a.settings = append(a.settings, setting{context, []string{"models", name, "contextTokens"}})
	}
	return a
}

// namedModel returns the model of --model, which is configured or offered by a server on this
// machine.
func (o *run) namedModel(ctx context.Context) (*answerer, error) {
	name := o.Model
	if m, known := o.config.Models[name]; known {
		if !inventory.IsLocal(m.BaseURL) {
			return nil, usage.Errorf("%v", inventory.ErrElsewhere(name))
		}
		return &answerer{model: name}, nil
	}
	models, err := o.findModels(ctx, usualServers)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, a := range models {
		if a.model == name || a.model == name+":latest" {
			return &a, nil
		}
		found = append(found, a.model)
	}
	return nil, usage.Errorf("--model: no server on this machine offers %q; found: %s; acp-agent "+
		"models explains how to start one", name, cmp.Or(strings.Join(found, ", "), "none"))
}
