package cli

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// downstream answers prompts: it is the agent that runs behind acp-agent, or a model. The zero
// value means neither.
type downstream struct {
	model model.Options // the user's choice of models first

	command process.Command
	agent   proxy.Options // without what the machine gives all of them
}

// behindVariable is set for agents behind acp-agent. If such an agent is acp-agent again, it does
// not let the configuration file choose what answers, because that would start the same agent
// endlessly.
const behindVariable = "ACP_AGENT_BEHIND"

// answering returns the name of the agent or model that answers: from --agent or --model, or from
// the configuration file if there is neither a flag nor a command in args. setting describes where
// it is named.
func (set *settings) answering(args []string) (agent, model, setting string) {
	if len(args) > 0 || set.flags.Changed("agent") || set.flags.Changed("model") ||
		os.Getenv(behindVariable) != "" {
		return set.agent, set.model, "--"
	}
	return set.config.Agent, set.config.Model, set.config.Path + ": "
}

// downstream returns the model or the agent that answers, with args added to the agent's own, or
// the agent that the command args starts.
func (set *settings) downstream(args []string) (downstream, error) {
	agent, name, setting := set.answering(args)
	behind := agent != "" || len(args) > 0
	switch {
	case len(args) > 0 && args[0] == "":
		return downstream{},
			usage.Errorf("the command after -- is empty: give a program and its arguments")
	case name != "" && behind:
		return downstream{}, usage.Errorf(
			"--model cannot be used with --agent or a command after --: other agents have models " +
				"of their own")
	case name != "":
		agents := set.agents()
		models, err := set.config.ModelsFrom(name)
		if err != nil {
			return downstream{}, usage.Errorf("%smodel: %v", setting, err)
		}
		if setting != "--" && !inventory.IsLocal(models[0].BaseURL) {
			return downstream{}, usage.Errorf("%s%v", setting, inventory.ErrElsewhere(name))
		}
		return downstream{model: model.Options{
			Models: models, Config: set.config.Path,
			Environment: process.EnvironmentWithout(set.config.KeyVariables()),
			Sandbox: func(id string) sandbox.Settings {
				return agents.sandboxed(set.config.Models[id].Settings())
			},
		}}, nil
	case !behind && set.sandbox != "":
		return downstream{},
			usage.Errorf("--sandbox needs an agent: add --agent NAME or a command after --")
	case !behind:
		return downstream{}, nil
	}
	return set.behind(agent, args, setting)
}

// behind returns the agent with this name, with args added to its own, or the one that the command
// args starts. setting says where it is named.
func (set *settings) behind(agent string, args []string, setting string) (downstream, error) {
	agents := set.agents()
	command, profile, err := agents.command(agent, args)
	if err != nil {
		return downstream{}, usage.Errorf("%sagent: %v", setting, err)
	}
	command.Env = append(slices.Clone(command.Env), behindVariable+"=1")
	o := proxy.Options{
		RootsTools: agents.self("mcp", "--mounts", string(set.mounts), "--state-dir", set.dir()),
		Relay:      agents.self("mcp-relay", "--max-line", strconv.Itoa(set.maxLine)),
		Sandboxer:  agents.sandboxer(),
	}
	if len(args) == 0 { // otherwise what the editor appends follows arguments of the agent
		o.LoginArgs = []string{"--"}
	}
	// The agent starts these two.
	profile.Sandbox.Read = append(slices.Clip(profile.Sandbox.Read), o.RootsTools.Path,
		set.config.Path)
	o.Profile = profile
	return downstream{command: command, agent: o}, nil
}

// name returns the name of the answering agent for the log.
func (d downstream) name() string {
	switch {
	case len(d.model.Models) > 0:
		return "model " + d.model.Models[0].ID
	case d.command.Path == "":
		return explore.Kind
	}
	return profiles.ProgramName(d.command.Path)
}

// login returns a command that signs in to the agent, or its own.
func (d downstream) login() string {
	itself := strings.Join(append([]string{d.command.Path}, d.command.Args...), " ")
	return cmp.Or(d.agent.Profile.Start.Login, itself)
}

// agents are the agents that this program can run, and how it runs them.
type agents struct {
	config  config.Config
	state   storeSettings
	sandbox string // --sandbox
}

// agents returns the agents of these settings.
func (set *settings) agents() agents {
	return agents{set.config, set.storeSettings, set.sandbox}
}

// list returns the profiles of all agents that --agent accepts: first those that are known or
// configured, then those that only the registry has, and an error if the registry cannot be read.
func (a agents) list() ([]profiles.Profile, error) {
	list := a.config.Profiles()
	r, _, err := a.state.registry()
	return append(list, r.Profiles(list)...), err
}

// command returns the command and profile of the known agent with the given name, with args
// added to its own, or of the agent that the command args starts if name is "".
func (a agents) command(
	name string, args []string,
) (process.Command, profiles.Profile, error) {
	list, err := a.list()
	profile, known := profiles.Find(list, name)
	command := profile.StartCommand()
	switch {
	case name == "":
		command = process.Command{Path: args[0], Args: args[1:]}
		profile, _ = profiles.Match(list, command)
	case !known:
		return command, profile, cmp.Or(err, inventory.UnknownAgent(name, list))
	default:
		command.Args = append(command.Args, args...)
	}
	command.Base = process.EnvironmentWithout(a.state.storeVariables())
	profile.Sandbox = a.sandboxed(profile.Sandbox)
	return command, profiles.Identify(list, profile, command), nil
}

// commandOf returns a command line that runs the agent of a session.
func (a agents) commandOf(owner sessionstore.Agent) string {
	flags, command := a.arguments(owner)
	words := append([]string{"acp-agent"}, flags...)
	if command != "" {
		words = append(words, "--", command)
	}
	return strings.Join(words, " ")
}

// arguments returns the arguments with which the program runs the agent of a session: flags,
// or the command line of an agent without a name.
func (a agents) arguments(owner sessionstore.Agent) (flags []string, command string) {
	switch owner.Kind {
	case proxy.Kind:
		list, _ := a.list() // without a registry, the command line is named
		for _, p := range list {
			if cmp.Or(p.Identity, p.Name) == owner.Profile {
				return []string{"--agent", p.Name}, ""
			}
		}
		command = shownCommand(owner.Profile)
		program, _, _ := strings.Cut(command, " ")
		if _, err := exec.LookPath(program); err != nil && filepath.Base(program) == program {
			command = "PATH/" + command // only the name is stored
		}
		return nil, command
	case model.Kind:
		return []string{"--model", cmp.Or(a.soleModel(), "NAME")}, ""
	}
	return nil, ""
}

// soleModel returns the configured model, or the only one that there is, or "".
func (a agents) soleModel() string {
	if ids := a.config.ModelIDs(); a.config.Model == "" && len(ids) == 1 {
		return ids[0]
	}
	return a.config.Model
}

// shownCommand returns a stored command line in a form that is safe to copy into a shell. In an
// imported session it may be any text.
func shownCommand(line string) string {
	for _, word := range strings.Fields(line) {
		if text.ShellWord(word) != word {
			return text.ShellWord(line)
		}
	}
	return line
}

// sandboxed returns the sandbox that is configured for what runs, with the mode of --sandbox.
func (a agents) sandboxed(s sandbox.Settings) sandbox.Settings {
	if a.sandbox != "" {
		s.Mode, _ = sandbox.ParseMode(a.sandbox) // load has checked it
	}
	return a.complete(s)
}

// complete returns a sandbox with what is the same for all of this program.
func (a agents) complete(s sandbox.Settings) sandbox.Settings {
	s.Helper = a.sandboxer()
	s.Own = append(ownPaths(a.state, a.config), filepath.Dir(config.DefaultPath()))
	s.Records = consentDir(a.state.dir())
	standard, _ := defaultStateDir() // none if it cannot be determined
	for _, dir := range []string{a.state.dir(), standard} {
		if dir != "" && !slices.Contains(s.Hidden, dir) {
			s.Hidden = append(s.Hidden, dir)
		}
	}
	return s
}

// mcpPolicy returns the policy for the MCP server called name.
func (a agents) mcpPolicy(name string) mcp.Policy {
	p := a.config.MCPPolicy(name)
	p.Sandbox = a.complete(p.Sandbox)
	return p
}

// sandboxer returns the command line that runs a deferred command in the sandbox, or nil if the
// program's path is unknown.
func (a agents) sandboxer() []string {
	self := a.self("sandbox", "--deferred")
	if self.Path == "" {
		return nil
	}
	return append([]string{self.Path}, self.Args...)
}

// self returns a subcommand of this program with the same configuration file, or the zero Command
// if the program's path is unknown.
func (a agents) self(subcommand string, flags ...string) process.Command {
	program, err := os.Executable()
	if err != nil {
		return process.Command{}
	}
	c := process.Command{Path: program, Args: []string{subcommand}}
	if path, err := filepath.Abs(a.config.Path); err == nil && a.config.Path != "" {
		c.Args = append(c.Args, "--config", path)
	}
	c.Args = append(c.Args, flags...)
	return c
}

// explainAdapter returns err, or what to do if the command that failed with it is that of an agent
// that speaks ACP only with another program.
func (a agents) explainAdapter(err error, command []string) error {
	if err == nil || len(command) == 0 {
		return err
	}
	list, _ := a.list() // those of a broken registry do not matter
	for _, p := range list {
		if inventory.WithoutAdapter(p) == profiles.ProgramName(command[0]) {
			return fmt.Errorf("%s does not speak ACP itself: %s, then use --agent %s", command[0],
				p.Start.Install, p.Name)
		}
	}
	return err
}
