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

// choice is an agent or a model with a name, or the agent that a command starts. The zero value is
// acp-agent itself.
type choice struct {
	agent, model string
	command      []string // starts the agent, or is added to the command of the named one
	file         string   // names the agent or model, "" if the command line does
}

// flags returns the flags that make this choice, without the command.
func (c choice) flags() []string {
	switch {
	case c.agent != "":
		return []string{"--agent", c.agent}
	case c.model != "":
		return []string{"--model", c.model}
	}
	return nil
}

// line returns the command line that makes this choice. command is added to that of the agent.
func (c choice) line(command string) string {
	line := strings.Join(append([]string{"acp-agent"}, c.flags()...), " ")
	if command != "" {
		line += " -- " + command
	}
	return line
}

// wrong returns an error about the agent or the model.
func (c choice) wrong(what string, err error) error {
	if c.file == "" {
		return usage.Errorf("--%s: %v", what, err)
	}
	return usage.Errorf("%s: %s: %v", c.file, what, err)
}

// choice returns what --agent, --model or a command choose, or the configuration file if there are
// none.
func (set *settings) choice(command []string) choice {
	if len(command) > 0 || set.flags.Changed("agent") || set.flags.Changed("model") ||
		os.Getenv(behindVariable) != "" {
		return choice{agent: set.agent, model: set.model, command: command}
	}
	return choice{agent: set.config.Agent, model: set.config.Model, file: set.config.Path}
}

// downstream returns the model or the agent of a choice.
func (set *settings) downstream(c choice) (downstream, error) {
	behind := c.agent != "" || len(c.command) > 0
	switch {
	case len(c.command) > 0 && c.command[0] == "":
		return downstream{},
			usage.Errorf("the command after -- is empty: give a program and its arguments")
	case c.model != "" && behind:
		return downstream{}, usage.Errorf(
			"--model cannot be used with --agent or a command after --: other agents have models " +
				"of their own")
	case c.model != "":
		return set.modelOf(c)
	case behind:
		return set.agentOf(c)
	case set.sandbox != "":
		return downstream{},
			usage.Errorf("--sandbox needs an agent: add --agent NAME or a command after --")
	}
	return downstream{}, nil
}

// modelOf returns the model of a choice.
func (set *settings) modelOf(c choice) (downstream, error) {
	models, err := set.config.ModelsFrom(c.model)
	if err != nil {
		return downstream{}, c.wrong("model", err)
	}
	if c.file != "" && !inventory.IsLocal(models[0].BaseURL) {
		return downstream{}, usage.Errorf("%s: %v", c.file, inventory.ErrElsewhere(c.model))
	}
	return downstream{model: model.Options{
		Models: models, Config: set.config.Path,
		Environment: process.EnvironmentWithout(set.config.KeyVariables()),
		Sandbox: func(id string) sandbox.Settings {
			return set.sandboxed(set.config.Models[id].Settings())
		},
	}}, nil
}

// agentOf returns the agent of a choice.
func (set *settings) agentOf(c choice) (downstream, error) {
	command, profile, err := set.command(c.agent, c.command)
	if err != nil {
		return downstream{}, c.wrong("agent", err)
	}
	command.Env = append(slices.Clone(command.Env), behindVariable+"=1")
	tools := set.self("mcp", "--mounts", string(set.mounts), "--state-dir", set.dir())
	// The agent starts these two.
	profile.Sandbox.Read = append(slices.Clip(profile.Sandbox.Read), tools.Path, set.config.Path)
	var loginArgs []string
	if len(c.command) == 0 { // otherwise what the editor appends follows arguments of the agent
		loginArgs = []string{"--"}
	}
	return downstream{command: command, agent: proxy.Options{
		Profile: profile, RootsTools: tools, LoginArgs: loginArgs, Sandboxer: set.sandboxer(),
		Relay: set.self("mcp-relay", "--max-line", strconv.Itoa(set.maxLine)),
	}}, nil
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

// profiles returns the profiles of all agents that --agent accepts: first those that are known or
// configured, then those that only the registry has, and an error if the registry cannot be read.
func (set *settings) profiles() ([]profiles.Profile, error) {
	list := set.config.Profiles()
	r, _, err := set.registry()
	return append(list, r.Profiles(list)...), err
}

// command returns the command and profile of the known agent with the given name, with args
// added to its own, or of the agent that the command args starts if name is "".
func (set *settings) command(
	name string, args []string,
) (process.Command, profiles.Profile, error) {
	list, err := set.profiles()
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
	command.Base = process.EnvironmentWithout(set.storeVariables())
	profile.Sandbox = set.sandboxed(profile.Sandbox)
	return command, profiles.Identify(list, profile, command), nil
}

// commandOf returns a command line that runs the agent of a session.
func (set *settings) commandOf(owner sessionstore.Agent) string {
	agent, command := set.agentOfSession(owner)
	return agent.line(command)
}

// agentOfSession returns the agent of a session, or the command line of one without a name.
func (set *settings) agentOfSession(owner sessionstore.Agent) (c choice, line string) {
	switch owner.Kind {
	case proxy.Kind:
		list, _ := set.profiles() // without a registry, the command line is named
		for _, p := range list {
			if cmp.Or(p.Identity, p.Name) == owner.Profile {
				return choice{agent: p.Name}, ""
			}
		}
		line = shownCommand(owner.Profile)
		program, _, _ := strings.Cut(line, " ")
		if _, err := exec.LookPath(program); err != nil && filepath.Base(program) == program {
			line = "PATH/" + line // only the name is stored
		}
		return choice{}, line
	case model.Kind:
		return choice{model: cmp.Or(set.soleModel(), "NAME")}, ""
	}
	return choice{}, ""
}

// soleModel returns the configured model, or the only one that there is, or "".
func (set *settings) soleModel() string {
	if ids := set.config.ModelIDs(); set.config.Model == "" && len(ids) == 1 {
		return ids[0]
	}
	return set.config.Model
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
func (set *settings) sandboxed(s sandbox.Settings) sandbox.Settings {
	if set.sandbox != "" {
		s.Mode, _ = sandbox.ParseMode(set.sandbox) // load has checked it
	}
	return set.completeSandbox(s)
}

// completeSandbox returns a sandbox with what is the same for all of this program.
func (set *settings) completeSandbox(s sandbox.Settings) sandbox.Settings {
	s.Helper = set.sandboxer()
	s.Own = append(set.ownPaths(), filepath.Dir(config.DefaultPath()))
	s.Records = set.dir(consentName)
	standard, _ := defaultStateDir() // none if it cannot be determined
	for _, dir := range []string{set.dir(), standard} {
		if dir != "" && !slices.Contains(s.Hidden, dir) {
			s.Hidden = append(s.Hidden, dir)
		}
	}
	return s
}

// mcpPolicy returns the policy for the MCP server called name.
func (set *settings) mcpPolicy(name string) mcp.Policy {
	p := set.config.MCPPolicy(name)
	p.Sandbox = set.completeSandbox(p.Sandbox)
	return p
}

// sandboxer returns the command line that runs a deferred command in the sandbox, or nil if the
// program's path is unknown.
func (set *settings) sandboxer() []string {
	self := set.self("sandbox", "--deferred")
	if self.Path == "" {
		return nil
	}
	return append([]string{self.Path}, self.Args...)
}

// self returns a subcommand of this program with the same configuration file, or the zero Command
// if the program's path is unknown.
func (set *settings) self(subcommand string, flags ...string) process.Command {
	program, err := os.Executable()
	if err != nil {
		return process.Command{}
	}
	c := process.Command{Path: program, Args: []string{subcommand}}
	if path, err := filepath.Abs(set.config.Path); err == nil && set.config.Path != "" {
		c.Args = append(c.Args, "--config", path)
	}
	c.Args = append(c.Args, flags...)
	return c
}

// explainAdapter returns err, or what to do if the program that failed with it is that of an agent
// that speaks ACP only with another program.
func (set *settings) explainAdapter(err error, program string) error {
	list, _ := set.profiles() // those of a broken registry do not matter
	for _, p := range list {
		if own := inventory.WithoutAdapter(p); own != "" && own == profiles.ProgramName(program) {
			return fmt.Errorf("%s does not speak ACP itself: %s, then use --agent %s", program,
				p.Start.Install, p.Name)
		}
	}
	return err
}
