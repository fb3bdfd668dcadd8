package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

const (
	defaultTimeout = 2 * time.Minute
	maxCommand     = 8 << 10 // bytes
)

type commandInput struct {
	Command string `json:"command" jsonschema:"the command line"`
	Cwd     string `json:"cwd,omitempty" jsonschema:"where to run; default the working directory"`
	Timeout int    `json:"timeout_seconds,omitempty" jsonschema:"default 120" min:"1" max:"600"`
}

// shellCommand is a command line and the directory that it runs in.
type shellCommand struct{ line, dir string }

// commandTool returns the tool that runs commands.
func commandTool() tool {
	return tool{run: (*modelCall).runOwn, Tool: tools.Define(tools.Tool{
		Name: "run_command", Kind: tools.KindExecute,
		Description: "Run a command line with the shell, such as a build or a test, and wait " +
			"until it ends. Nobody can type into it. The user is asked first. To read, search or " +
			"change files, use the other tools.",
		Annotations: tools.Annotations{Destructive: true},
	}, func(in commandInput) string {
		return text.Code(text.Line(in.Command, text.MaxArgument))
	}, (*modelCall).runCommand)}
}

// argv returns a command line as a program and its arguments. Some clients run the command of
// terminal/create with a shell, and some without one: acpx and others that spawn it fail if it is a
// whole command line, and Zed quotes the arguments for the shell that it adds. Starting a shell
// ourselves works in all of them.
func argv(line string) (program string, args []string) {
	if runtime.GOOS == "windows" {
		return "cmd.exe", []string{"/d", "/s", "/c", line}
	}
	return "/bin/sh", []string{"-c", line}
}

// runCommand runs a command if the user allows it.
func (c *modelCall) runCommand(ctx context.Context, in commandInput) (string, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return "", errors.New("the command is empty")
	case len(in.Command) > maxCommand:
		size, most := text.Size(len(in.Command)), text.Size(maxCommand)
		return "", fmt.Errorf(
			"the command is %s long; the limit is %s: write a script and run that", size, most)
	case !text.IsVisible(in.Command):
		return "", errors.New(
			"the command has characters that the user could not see or tell from a space")
	}
	dir, err := c.directory(cmp.Or(in.Cwd, "."))
	if err != nil {
		return "", err
	}
	cmd := shellCommand{in.Command, dir}
	permitted, env, err := c.permitCommand(ctx, cmd)
	if err != nil {
		return "", fmt.Errorf("the command was not run: %w", err)
	}
	env = append(unattended(), env...)
	switch now, err := c.directory(dir); { // the user may have taken a long time
	case err != nil:
		return "", err
	case now != dir:
		return "", fmt.Errorf("the command was not run, because %s now points somewhere else",
			text.Printable(dir))
	}
	c.phase = callRunning
	defer func() { // its own changes are not a reason to ask again
		_, left, _ := c.commandIn(cmd)
		c.turn.host.Ran(permitted, left)
	}()
	timeout := cmp.Or(time.Duration(in.Timeout)*time.Second, defaultTimeout)
	inTerminal := c.turn.runsInTerminal()
	run := c.runChild
	if inTerminal {
		run = c.runTerminal
	}
	printed, ended, err := run(ctx, cmd, env, timeout)
	result := printed + "[" + ended + "]"
	if err == nil && !inTerminal {
		err = c.showOutput(ctx, result)
	}
	if err == nil && ended != succeeded {
		err = errors.New(result)
	}
	return result, err
}

// succeeded is how a command has ended that was successful.
const succeeded = "exit code 0"

// killedAfter says how a command has ended that took too long.
func killedAfter(timeout time.Duration) string {
	return fmt.Sprintf("killed, because it had not ended after %v", timeout)
}

// unattended returns variables that keep a command from waiting for someone: pagers print, an
// editor fails with advice, and git and gh do not ask. A command line may still name an editor in
// a variable.
func unattended() []string {
	const noEditor = `sh -c 'echo "Nobody can use an editor here. Pass the text as an option or a ` +
		`file (git: -m, -F, --no-edit), or begin with GIT_EDITOR=true to keep what is proposed, ` +
		`or with GIT_SEQUENCE_EDITOR and a program that edits the file." >&2; exit 1'`
	return []string{
		"EDITOR=" + noEditor, "VISUAL=" + noEditor, `GIT_EDITOR=f() { eval "$EDITOR \"\$@\""; }; f`,
		`GIT_SEQUENCE_EDITOR=f() { eval "$GIT_EDITOR \"\$@\""; }; f`, "GIT_MERGE_AUTOEDIT=no",
		"GIT_TERMINAL_PROMPT=0", "GH_PROMPT_DISABLED=1", "PAGER=cat", "GIT_PAGER=cat",
		"MANPAGER=cat", "GH_PAGER=cat", "SYSTEMD_PAGER=cat", "AWS_PAGER=cat", "BAT_PAGER=cat",
	}
}

// directory returns the path of a directory without links.
func (c *modelCall) directory(path string) (string, error) {
	dir, err := c.turn.host.Workspace().OpenDir(path)
	if err != nil {
		return "", fmt.Errorf("cannot run a command there: %w", err)
	}
	return dir.Ref().Path(), dir.Close()
}

// commandIn returns the action of a command, the files that it names, and variables for its
// environment.
func (c *modelCall) commandIn(
	cmd shellCommand,
) (files []string, action permission.Action, env []string) {
	at := permission.At(c.turn.host.Workspace())
	action, env = at.Command(cmd.line, cmd.dir)
	if env != nil {
		action.Command.Odd = ""
	}
	action.Command.State, files = at.Contents(action)
	action.Standing = true
	return files, action, env
}

// permitCommand asks whether to run the command: rules decide, or the user. The user is not asked
// again if they have allowed the command for the session and the files that it names are still the
// same. It returns what was permitted, and variables for the command's environment.
func (c *modelCall) permitCommand(
	ctx context.Context, cmd shellCommand,
) (permission.Action, []string, error) {
	files, action, env := c.commandIn(cmd)
	shown := backend.ToolCall{Content: backend.TextContent(
		"In " + text.Code(cmd.dir) + ":\n\n" + text.Block("sh", cmd.line))}
	shown.Title = &c.title
	_, err := c.askUser(ctx, backend.Question{
		Call: shown, Always: exactly(action.Command.State, files)}, action)
	return action, env, err
}

// exactly is the label of the answer that allows a command for the session, as long as these files
// stay as they are. state is "" if that cannot be determined.
func exactly(state string, files []string) string {
	const label = "Always allow this command in this session, "
	switch n := len(files); {
	case state == "" || n == 0:
		return label + "even if files that it runs change"
	case n == 1:
		return label + "as long as " + text.Argument(files[0]) + " does not change"
	default:
		return label + "as long as " + text.Argument(files[0]) + " and " +
			text.Count(n-1, "other file", "other files") + " do not change"
	}
}

// mayRun reports whether the session may run commands.
func (s *modelSession) mayRun() bool {
	if s.backend.terminal || !s.backend.given.OnlyInSandbox {
		return true
	}
	restrictions, _ := s.sandbox()
	return restrictions.Mode != sandbox.Off
}

// runsInTerminal reports whether commands run in a terminal of the client, which cannot restrict
// them.
func (s *modelSession) runsInTerminal() bool {
	restrictions, _ := s.sandbox()
	return s.backend.terminal && restrictions.Mode == sandbox.Off
}

// sandbox returns what restricts commands, and the roots that they may change.
func (s *modelSession) sandbox() (sandbox.Settings, []workspace.Root) {
	if s.backend.given.Sandbox == nil {
		return sandbox.Settings{}, nil
	}
	return s.backend.given.Sandbox(s.snapshot().Model), s.host.Workspace().Opened()
}

// escapes matches the sequences that control a terminal.
var escapes = text.Pattern("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]" +
	"|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\-_])")

// drawnOver matches what a program prints before it goes back to the beginning of the line, and the
// first character that it prints there.
var drawnOver = text.Pattern("[^\n]*\r([^\r\n])")

// plainOutput returns what a command has printed as text, with a line break after it unless it is
// empty.
func plainOutput(printed string) string {
	said := escapes().ReplaceAllString(strings.ToValidUTF8(printed, "\uFFFD"), "")
	said = text.Plain(drawnOver().ReplaceAllString(said, "$1"))
	if said != "" && !strings.HasSuffix(said, "\n") {
		said += "\n"
	}
	return said
}
