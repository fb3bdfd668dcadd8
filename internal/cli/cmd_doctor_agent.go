package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/cli/runner"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// examineAgent starts the agent with this name, or the agent of a command.
func (e *examination) examineAgent(ctx context.Context, name string, args []string) {
	subject := "agent " + name
	if name == "" {
		subject = "agent " + profiles.ProgramName(args[0])
	}
	command, profile, err := e.command(name, args)
	if err != nil {
		e.judge(subject, "", err)
		return
	}
	setting := e.commandSetting(name, profile)
	path, err := exec.LookPath(command.Path)
	if err != nil {
		e.report(subject, broken, adviseInstalling(command.Path, profile, setting))
		return
	}
	if config.IsPath(command.Path) {
		if command.Path, err = filepath.Abs(path); err != nil {
			e.judge(subject, "", err)
			return
		}
	}
	agent, err := tryAgent(ctx, downstream{
		command: command, agent: proxy.Options{Profile: profile},
	})
	interpreter := confine.Interpreter(path)
	if err != nil && interpreter != "" {
		if _, missing := exec.LookPath(interpreter); missing != nil {
			err = fmt.Errorf("%s needs %s, which was not found in PATH: install it", path,
				interpreter)
		}
	}
	detail := path
	if agent.Release != unnamed {
		detail += ", " + strings.TrimSpace(agent.Name+" "+agent.Release)
	}
	if profile.Sandbox.Mode != sandbox.Off {
		detail += ", sandbox " + process.InEffect(profile.Sandbox)
	}
	if e.judge(subject, detail, err); err != nil {
		return
	}
	if doubt := profiles.Doubt(agent.Raw, profile); doubt != "" {
		e.report(subject, doubtful, doubt)
	}
	e.findHidden(subject, command.Path, interpreter, setting)
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

// findHidden reports that editors may not find an agent's program or its interpreter.
func (e *examination) findHidden(subject, path, interpreter, setting string) {
	for _, program := range []string{path, interpreter} {
		found, err := exec.LookPath(program)
		if err != nil || filepath.IsAbs(program) || inventory.InDesktopPath(found) {
			continue
		}
		advice := fmt.Sprintf("let them start acp-agent with %s in PATH", filepath.Dir(found))
		if setting != "" && program == path {
			advice = fmt.Sprintf("set %s to %s", setting, found)
		}
		e.report(subject, doubtful, fmt.Sprintf(
			"editors started from a desktop may not find %s: %s", program, advice))
	}
}

// commandSetting returns the key of the configuration file that names the program of an agent. It
// returns "" for an agent that is neither known nor configured.
func (e *examination) commandSetting(name string, p profiles.Profile) string {
	for _, own := range []string{name, p.Identity} {
		if _, ok := profiles.Find(e.config.Profiles(), own); ok && name != "" {
			return "agents." + own + ".command"
		}
	}
	return ""
}

// unnamed is the version with which acp-agent introduces an agent that does not say its name.
const unnamed = "unnamed"

// tryAgent opens a session of an agent in an empty directory, as an editor does that starts
// acp-agent in front of it.
func tryAgent(ctx context.Context, d downstream) (agent client.Agent, err error) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("it has not answered within %v: if it installs itself first, as npx and uvx "+
			"do, start it once in a terminal", patience))
	defer cancel()
	dir, err := os.MkdirTemp("", "acp-agent-doctor")
	if err != nil {
		return agent, err
	}
	defer os.RemoveAll(dir)
	roots, err := workspace.NewRoots(dir, nil)
	if err != nil {
		return agent, err
	}
	store := sqlite.NewMemory()
	defer store.Close()
	we := client.Options{Name: "acp-agent doctor", Version: ownVersion().Number}
	c, end := runner.Connect(ctx, we,
		func(ctx context.Context, in io.Reader, out io.Writer) error {
			return acp.Serve(ctx, in, out, acp.Options{Store: store, Version: unnamed,
				Backend: func() backend.Backend { return proxy.New(d.command, d.agent) }})
		})
	var session client.Session
	if agent, err = c.Initialize(ctx); err == nil {
		session, err = c.NewSession(ctx, client.Setup{Roots: roots})
	}
	if err == nil {
		_ = c.DeleteSession(ctx, session.ID) // as far as the agent can
	}
	err = cmp.Or(context.Cause(ctx), d.explain(agent, err))
	_ = end() // the session was opened, or not
	return agent, err
}

// explain says what the error of an agent means, which is nil or acp-agent's answer.
func (d downstream) explain(agent client.Agent, err error) error {
	refused, _ := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return nil
	case refused != nil && refused.Code == protocol.CodeAuthRequired:
		return runner.ExplainLogin(agent, refused, d.login())
	case refused != nil:
		err = runner.Explain(refused)
	}
	said, _, _ := strings.Cut(err.Error(), "; acp-agent doctor ") // which says more
	if agent.Raw != nil {
		said = "it opens no session: " + said
	}
	return errors.New(said)
}
