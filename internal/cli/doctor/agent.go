package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/cli/runner"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// examineAgent starts the agent with this name, or the agent of a command, and asks for its
// capabilities.
func (e *Examination) examineAgent(ctx context.Context, name string, args []string) []Finding {
	subject := "agent " + name
	if name == "" {
		subject = "agent " + profiles.ProgramName(args[0])
	}
	command, profile, err := e.AgentCommand(name, args)
	if err != nil {
		return []Finding{judge(subject, "", err)}
	}
	setting := e.commandSetting(name, profile)
	path, err := exec.LookPath(command.Path)
	if err != nil {
		return []Finding{{subject, Broken, adviseInstalling(command.Path, profile, setting)}}
	}
	if e.Sandbox != "" {
		profile.Sandbox.Mode, _ = sandbox.ParseMode(e.Sandbox) // Run has checked it
	}
	if config.IsPath(command.Path) {
		if command.Path, err = filepath.Abs(path); err != nil {
			return []Finding{judge(subject, "", err)}
		}
	}
	agent, err := e.tryAgent(ctx, command, profile)
	interpreter := process.Interpreter(path)
	if err != nil && interpreter != "" {
		if _, missing := exec.LookPath(interpreter); missing != nil {
			err = fmt.Errorf("%s needs %s, which was not found in PATH: install it", path, interpreter)
		}
	}
	detail := path + ", " + describeAgent(agent)
	if profile.Sandbox.Mode != sandbox.Off {
		detail += ", sandbox " + process.InEffect(profile.Sandbox)
	}
	findings := []Finding{judge(subject, detail, err)}
	if err != nil {
		return findings
	}
	if doubt := profiles.Doubt(agent.Raw, profile); doubt != "" {
		findings = append(findings, Finding{subject, Doubtful, doubt})
	}
	return append(findings, findHidden(subject, command.Path, interpreter, setting)...)
}

// adviseInstalling says what to do about a program that is missing. setting names it in the
// configuration file, "" for none.
func adviseInstalling(program string, p profiles.Profile, setting string) string {
	advice := "install it"
	if p.Start.Install != "" {
		advice += ": " + p.Start.Install
	}
	if _, err := exec.LookPath("npm"); err != nil && strings.HasPrefix(p.Start.Install, "npm ") {
		advice += " (npm is not in PATH either; it comes with Node.js)"
	}
	if setting != "" {
		advice += ", or set " + setting + " to its path"
	}
	return fmt.Sprintf("%s was not found in PATH: %s", program, advice)
}

// findHidden returns findings about an agent's program and its interpreter that editors may not
// find.
func findHidden(subject, path, interpreter, setting string) (findings []Finding) {
	for _, program := range []string{path, interpreter} {
		found, err := exec.LookPath(program)
		if err != nil || filepath.IsAbs(program) || inventory.InDesktopPath(found) {
			continue
		}
		advice := fmt.Sprintf("let them start acp-agent with %s in PATH", filepath.Dir(found))
		if setting != "" && program == path {
			advice = fmt.Sprintf("set %s to %s", setting, found)
		}
		findings = append(findings, Finding{subject, Doubtful, fmt.Sprintf(
			"editors started from a desktop may not find %s: %s", program, advice)})
	}
	return findings
}

// commandSetting returns the key of the configuration file that names the program of an agent. It
// returns "" for an agent that is neither known nor configured.
func (e *Examination) commandSetting(name string, p profiles.Profile) string {
	for _, own := range []string{name, p.Identity} {
		if _, ok := profiles.Find(e.Config.Profiles(), own); ok && name != "" {
			return "agents." + own + ".command"
		}
	}
	return ""
}

// tryAgent starts an agent, opens a session in an empty directory and ends it.
func (e *Examination) tryAgent(
	ctx context.Context, command process.Command, profile profiles.Profile,
) (agent client.Agent, err error) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("it has not answered within %v: if it installs itself first, as npx and uvx do, "+
			"start it once in a terminal", patience))
	defer cancel()
	dir, err := os.MkdirTemp("", "acp-agent-doctor")
	if err != nil {
		return agent, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return agent, err
	}
	if profile.Sandbox.Mode != sandbox.Off { // it may write there, because it is temporary
		command.Dir = dir
	}
	if command, err = profile.Restrict(command, nil); err != nil {
		return agent, err
	}
	agent, err = e.introduce(ctx, command, dir)
	refused, _ := errors.AsType[*client.Error](err)
	switch {
	case refused != nil && refused.Code == protocol.CodeAuthRequired:
		itself := strings.Join(append([]string{command.Path}, command.Args...), " ")
		login := cmp.Or(profile.Start.Login, itself)
		err = runner.ExplainLogin(agent, refused, login)
	case refused != nil:
		err = fmt.Errorf("it opens no session: %w", runner.Explain(refused))
	}
	switch {
	case err != nil && (refused == nil || refused.Code != protocol.CodeAuthRequired) &&
		(command.Sandbox.Mode == sandbox.Strict ||
			command.Sandbox.Mode == sandbox.Write && sandbox.Refused(err.Error())):
		err = fmt.Errorf("%w. %s", err, process.ExplainFailure(command.Sandbox, err.Error(), "the agent",
			"agents."+cmp.Or(profile.Name, "NAME")))
	}
	return agent, err
}

// introduce starts an agent, introduces acp-agent to it, opens a session in dir and ends it. If the
// agent refuses that, the error is a [client.Error].
func (e *Examination) introduce(
	ctx context.Context, command process.Command, dir string,
) (agent client.Agent, err error) {
	secrets := secret.OfCommand(command.Args, command.Env)
	child, err := process.Start(ctx, command, process.Options{
		Logger: slog.New(slog.DiscardHandler), Secrets: secrets,
	})
	if err != nil {
		return client.Agent{}, err
	}
	c := client.New(child.Stdout(), child.Stdin(), client.Options{
		Name: "acp-agent doctor", Version: e.Version,
	})
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- c.Serve(serving) }()
	agent, err = c.Initialize(ctx)
	if err == nil {
		err = openOnce(ctx, c, agent, dir)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer end()
	stopErr := child.Stop(ending)
	stop()
	<-served // output after its answer does not matter
	refused, _ := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return agent, stopErr
	case agent.Raw != nil && refused != nil:
		told := *refused
		told.Message = secrets.Text(refused.Message)
		return agent, &told
	}
	if errors.Is(err, jsonrpc.ErrClosed) {
		err = errors.New("it ended or closed its output. Many agents need an argument, such as " +
			"opencode acp; run its command in a terminal to see what it prints")
	}
	exit, ended := errors.AsType[*process.ExitError](child.Wait(ending))
	if ended && ctx.Err() == nil { // otherwise Stop has ended it
		err = exit // it is more specific than the end of the connection
	}
	return agent, errors.New("it does not answer as an ACP agent: " +
		secrets.Text(runner.Explain(err).Error()))
}

// openOnce opens a session in dir, and deletes or closes it if the agent can.
func openOnce(ctx context.Context, c *client.Client, agent client.Agent, dir string) error {
	roots, err := workspace.NewRoots(dir, nil)
	if err != nil {
		return err
	}
	session, err := c.NewSession(ctx, client.Setup{Roots: roots})
	switch {
	case err != nil:
		return err
	case agent.Delete:
		_ = c.DeleteSession(ctx, session.ID)
	case agent.Close:
		_ = c.CloseSession(ctx, session.ID)
	}
	return nil
}

// describeAgent describes what an agent can do with sessions and folders.
func describeAgent(a client.Agent) string {
	var info struct {
		AgentInfo struct{ Name, Version string }
	}
	_ = json.Unmarshal(a.Raw, &info) // absent members are left out
	can := []string{}
	for _, c := range []struct {
		has  bool
		what string
	}{{a.Load, "load"}, {a.Resume, "resume"}, {a.Fork, "fork"}, {a.List, "list"},
		{a.AdditionalDirectories, "additional folders"}} {
		if c.has {
			can = append(can, c.what)
		}
	}
	abilities := "can " + cmp.Or(strings.Join(can, ", "), "only open new sessions")
	name := strings.TrimSpace(info.AgentInfo.Name + " " + info.AgentInfo.Version)
	if name == "" {
		return abilities
	}
	return name + ", " + abilities
}
