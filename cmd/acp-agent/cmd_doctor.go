package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/inventory"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/runner"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// newDoctor returns the command that checks the installation.
func newDoctor(s streams, set *settings) *cobra.Command {
	var asJSON bool
	var e examination
	cmd := &cobra.Command{
		Use:   "doctor [AGENT]... [-- COMMAND ARGS...]",
		Short: "Check the configuration, the stored sessions, agents and models",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) (
			[]string, cobra.ShellCompDirective,
		) {
			return set.completeAgents(cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.agents = args
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				e.agents, e.command = args[:at], args[at:]
			}
			done := e.tellOn(s.err)
			findings := set.examine(cmd.Context(), e)
			done()
			if asJSON {
				if err := writeJSON(s.out, map[string]any{"findings": findings}); err != nil {
					return err
				}
			} else {
				for _, f := range findings {
					if _, err := fmt.Fprintln(s.out, text.Plain(f.String())); err != nil {
						return err
					}
				}
			}
			if slices.ContainsFunc(findings, func(f finding) bool { return f.State == broken }) {
				return errors.New("something does not work: see the lines with ✗")
			}
			return nil
		},
	}
	cmd.Flags().Var((*listValue)(&e.servers), "mcp-config",
		"also start the MCP servers in `FILE`; can be repeated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	set.accept(cmd, "state-dir", "store")
	mode := *set.flags.Lookup("sandbox")
	mode.Usage = "start the agents in the sandbox, with `MODE` write or strict, and open a session in each"
	cmd.Flags().AddFlag(&mode)
	return cmd
}

// An examination says what doctor checks besides the configuration.
type examination struct {
	agents  []string // by name
	command []string // of another agent, or nil
	servers []string // files with MCP servers
	// begins is called before each check that may take long.
	begins func(subject string)
}

// tellOn makes the examination show what it waits for, if w is a terminal, until done is called.
func (e *examination) tellOn(w io.Writer) (done func()) {
	width := terminal.Width(w)
	if width == 0 || !terminal.ObeysEscapes() {
		e.begins = func(string) {}
		return func() {}
	}
	const erased = "\r\x1b[K"
	e.begins = func(subject string) {
		fmt.Fprint(w, erased+terminal.Cut("… checking "+text.Plain(subject), width-1))
	}
	return func() { fmt.Fprint(w, erased) }
}

// A finding is the result of one check.
type finding struct {
	Subject string `json:"subject"`
	State   state  `json:"state"`
	// Text says what was found, and what to do if something is wrong.
	Text string `json:"text"`
}

type state string

const (
	works    state = "works"
	doubtful state = "doubtful"
	broken   state = "broken"
)

// String returns the finding as a line.
func (f finding) String() string {
	mark := map[state]string{works: "✓", doubtful: "!", broken: "✗"}[f.State]
	return fmt.Sprintf("%s %s: %s", mark, f.Subject, f.Text)
}

// judge returns the finding of a check: err, or text if err is nil.
func judge(subject, text string, err error) finding {
	if err != nil {
		return finding{subject, broken, err.Error()}
	}
	return finding{subject, works, text}
}

// examine checks everything. The configuration may be invalid.
func (set *settings) examine(ctx context.Context, e examination) []finding {
	v := ownVersion()
	findings := []finding{{"acp-agent", works,
		fmt.Sprintf("%s for %s/%s", v.Number, runtime.GOOS, runtime.GOARCH)}}
	err := set.load()
	if _, wrong := sandbox.ParseMode(cmp.Or(set.sandbox, sandbox.Off.String())); wrong != nil {
		return append(findings, judge("--sandbox", "", wrong))
	}
	findings = append(findings, judge("configuration",
		cmp.Or(set.config.Path, "none; "+cmp.Or(config.DefaultPath(), "--config FILE")+
			" would be read"), err))
	if err != nil {
		return findings
	}
	e.begins("the stored sessions")
	findings = append(findings, set.examineFiles(ctx)...)
	findings = append(findings, set.examineWorkspaces(ctx)...)
	findings = append(findings, set.examineRegistry()...)
	agents := slices.Clone(e.agents)
	configured := slices.Sorted(maps.Keys(set.config.Agents))
	if set.config.Agent != "" {
		configured = append(configured, set.config.Agent)
	}
	for _, name := range configured {
		if !slices.Contains(agents, name) {
			agents = append(agents, name)
		}
	}
	for _, name := range agents {
		e.begins("agent " + name)
		findings = append(findings, set.examineAgent(ctx, name, nil)...)
	}
	if len(e.command) > 0 {
		e.begins("agent " + e.command[0])
		findings = append(findings, set.examineAgent(ctx, "", e.command)...)
	} else if len(agents) == 0 {
		findings = append(findings, finding{"agents", works,
			"none configured; acp-agent doctor NAME checks a known one"})
	}
	findings = append(findings, set.examineModels(ctx, e.begins)...)
	e.begins("MCP servers")
	return append(findings, set.examineServers(ctx, e.servers)...)
}

// examineWorkspaces checks whether sessions with configured folders can be opened.
func (set *settings) examineWorkspaces(ctx context.Context) (findings []finding) {
	for i, w := range set.config.Workspaces {
		if len(w.Directories) == 0 {
			continue
		}
		subject := fmt.Sprintf("workspaces[%d]", i)
		opened, _, err := set.openRoots(ctx, rootFlags{cwd: w.Cwd})
		works := ""
		if err == nil {
			works = fmt.Sprintf("sessions in %s have %s", w.Cwd,
				text.Count(opened.Roots().Len(), "folder", "folders"))
			opened.Close()
		} else {
			err = fmt.Errorf("no session opens in %s: %w", w.Cwd, err)
		}
		findings = append(findings, judge(subject, works, err))
		if _, missing := os.Stat(w.Cwd); errors.Is(missing, fs.ErrNotExist) {
			findings[len(findings)-1].State = doubtful // it may be a project that is gone
		}
	}
	return findings
}

// examineRegistry checks the copy of the registry, if there is one.
func (set *settings) examineRegistry() []finding {
	r, err := set.registry()
	if err == nil && r.CopiedAt.IsZero() {
		return nil
	}
	return []finding{judge("registry", fmt.Sprintf("%s, copied on %s from %s",
		text.Count(len(r.Agents), "agent", "agents"), r.CopiedAt.Format(time.DateOnly),
		r.CopiedFrom), err)}
}

// examineFiles checks the state directory and the session store, and who else can change the
// program's files.
func (set *settings) examineFiles(ctx context.Context) []finding {
	findings := set.examineStore(ctx)
	for _, warning := range set.fileWarnings() {
		findings = append(findings, finding{warning.path, doubtful, warning.text})
	}
	return findings
}

// examineStore opens the session store, reads a session if there is one, and checks that the store
// is writable.
func (set *settings) examineStore(ctx context.Context) []finding {
	const subject = "sessions"
	if set.store != "" {
		return set.examineDatabase(ctx, subject)
	}
	dir, err := set.stateDirectory()
	if err == nil {
		err = set.tryStore(ctx)
	}
	return []finding{judge(subject, dir, err)}
}

// tryStore is [settings.examineStore] for a store in a file.
func (set *settings) tryStore(ctx context.Context) error {
	store, err := set.serverStore(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	return set.withStore(io.Discard, func(store sessionstore.Store) error {
		_, err := store.List(ctx, sessionstore.Query{Limit: 1})
		return err
	})
}

// examineDatabase checks the database with the sessions.
func (set *settings) examineDatabase(ctx context.Context, subject string) []finding {
	store, err := openPostgres(set.store, 0)
	if err != nil {
		return []finding{judge(subject, "", err)}
	}
	defer store.Close()
	h, err := store.Check(ctx)
	findings := []finding{judge(subject, fmt.Sprintf("%s: PostgreSQL %s, schema version %d, answers in %v",
		store, h.Server, h.Schema, h.RoundTrip.Round(10*time.Microsecond)), err)}
	if err != nil {
		return findings
	}
	if h.ReadOnly {
		findings = append(findings, finding{subject, broken, "the database can only be read; " +
			"give the address of its primary, or of all servers with target_session_attrs=read-write"})
	}
	if !h.Protected {
		findings = append(findings, finding{subject, doubtful, "the connection may be unencrypted, or the " +
			"database another one than it says: add sslmode=verify-full to the address"})
	}
	if !h.RowSecurity {
		findings = append(findings, finding{subject, doubtful, fmt.Sprintf("row-level security does not "+
			"apply to the user %s: use one that is neither a superuser nor has BYPASSRLS", h.User)})
	}
	return findings
}

// examineAgent starts the agent with this name, or the agent of a command, and asks for its
// capabilities.
func (set *settings) examineAgent(ctx context.Context, name string, args []string) []finding {
	subject := "agent " + name
	if name == "" {
		subject = "agent " + profiles.ProgramName(args[0])
	}
	command, profile, err := set.agentCommand(name, args)
	if err != nil {
		return []finding{judge(subject, "", err)}
	}
	setting := set.commandSetting(name, profile)
	path, err := exec.LookPath(command.Path)
	if err != nil {
		return []finding{{subject, broken, adviseInstalling(command.Path, profile, setting)}}
	}
	if set.sandbox != "" {
		if profile.Sandbox.Mode, err = sandbox.ParseMode(set.sandbox); err != nil {
			return []finding{judge(subject, "", err)}
		}
	}
	agent, err := set.tryAgent(ctx, command, profile)
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
	findings := []finding{judge(subject, detail, err)}
	if err != nil {
		return findings
	}
	if doubt := profiles.Doubt(agent.Raw, profile); doubt != "" {
		findings = append(findings, finding{subject, doubtful, doubt})
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
func findHidden(subject, path, interpreter, setting string) (findings []finding) {
	for _, program := range []string{path, interpreter} {
		found, err := exec.LookPath(program)
		if err != nil || filepath.IsAbs(program) || inventory.InDesktopPath(found) {
			continue
		}
		advice := fmt.Sprintf("let them start acp-agent with %s in PATH", filepath.Dir(found))
		if setting != "" && program == path {
			advice = fmt.Sprintf("set %s to %s", setting, found)
		}
		findings = append(findings, finding{subject, doubtful, fmt.Sprintf(
			"editors started from a desktop may not find %s: %s", program, advice)})
	}
	return findings
}

// commandSetting returns the key of the configuration file that names the program of an agent. It
// returns "" for an agent that is neither known nor configured.
func (set *settings) commandSetting(name string, p profiles.Profile) string {
	for _, own := range []string{name, p.Identity} {
		if _, ok := profiles.Find(set.config.Profiles(), own); ok && name != "" {
			return "agents." + own + ".command"
		}
	}
	return ""
}

// tryAgent starts an agent in an empty directory, introduces acp-agent to it and ends it. With
// --sandbox it also opens a session there.
func (set *settings) tryAgent(
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
	if command.Dir, err = filepath.EvalSymlinks(dir); err != nil {
		return agent, err
	}
	// The directory is in the temporary one, where the sandbox lets it write.
	if command, err = profile.Restrict(command, nil); err != nil {
		return agent, err
	}
	then := func(*client.Client, client.Agent) error { return nil }
	if set.sandbox != "" {
		then = func(c *client.Client, a client.Agent) error { return openOnce(ctx, c, a, command.Dir) }
	}
	agent, err = introduce(ctx, command, then)
	refused, _ := errors.AsType[*client.Error](err)
	signsIn := refused != nil && refused.Code == protocol.CodeAuthRequired
	switch {
	case signsIn && profile.Start.Login != "":
		err = fmt.Errorf("%w; sign in with %s", err, profile.Start.Login)
	case err != nil && !signsIn && (command.Sandbox.Mode == sandbox.Strict ||
		command.Sandbox.Mode == sandbox.Write && sandbox.Refused(err.Error())):
		err = fmt.Errorf("%w. %s", err, process.ExplainFailure(command.Sandbox, err.Error(), "the agent",
			"agents."+cmp.Or(profile.Name, "NAME")))
	}
	return agent, err
}

// introduce starts an agent, introduces acp-agent to it, calls then and ends it. A [client.Error] is
// what the agent answered then.
func introduce(
	ctx context.Context, command process.Command, then func(*client.Client, client.Agent) error,
) (agent client.Agent, err error) {
	secrets := secret.OfCommand(command.Args, command.Env)
	child, err := process.Start(ctx, command, process.Options{
		Logger: slog.New(slog.DiscardHandler), Secrets: secrets,
	})
	if err != nil {
		return client.Agent{}, err
	}
	c := client.New(child.Stdout(), child.Stdin(), client.Options{
		Name: "acp-agent doctor", Version: ownVersion().Number,
	})
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- c.Serve(serving) }()
	agent, err = c.Initialize(ctx)
	if err == nil {
		err = then(c, agent)
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
		return agent, fmt.Errorf("it opens no session: %w", &told)
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

// examineModels asks the servers of all configured models which models they offer. It calls begins
// before each.
func (set *settings) examineModels(ctx context.Context, begins func(string)) []finding {
	var findings []finding
	for _, id := range set.config.ModelIDs() {
		begins("model " + id)
		reports, err := inventory.Models(ctx, set.config, []string{id})
		if err != nil {
			findings = append(findings, judge("model "+id, "", err))
			continue
		}
		for _, r := range reports {
			findings = append(findings, findingOf(r))
		}
	}
	return findings
}

// findingOf returns the finding about a model.
func findingOf(r inventory.Model) finding {
	f := finding{"model " + r.ID, works, fmt.Sprintf("%s at %s", r.Name, r.BaseURL)}
	switch {
	case r.Error != "":
		f.State, f.Text = broken, fmt.Sprintf("%s cannot be asked: %s", r.BaseURL, r.Error)
	case r.Unlisted:
		f.State = doubtful
		f.Text = fmt.Sprintf("%s does not list its models, so %q could not be checked; to try it: "+
			"acp-agent run --model %s hello", r.BaseURL, r.Name, r.ID)
	case !r.Offered():
		f.State = doubtful
		f.Text = fmt.Sprintf("%s does not offer %q; acp-agent models %s shows what it offers",
			r.BaseURL, r.Name, r.ID)
	}
	return f
}
