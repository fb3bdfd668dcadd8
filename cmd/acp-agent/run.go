package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// runFlags are the flags of the run subcommand.
type runFlags struct {
	cwd  string
	dirs []string
	json bool
	// yes allows what the agent asks for.
	yes bool
	// mcp are MCP servers as NAME=COMMAND, mcpConfigs files of them.
	mcp, mcpConfigs []string
	// At most one of these names a stored session to go on with.
	load, resume, fork string
}

const runExample = `  acp-agent run --cwd app --dir shared --dir skills /roots
  acp-agent run --dir ../shared "/search func .*Retry"
  acp-agent run --cwd app --load sess_ABC /help
  acp-agent run --json --cwd app hello -- opencode acp
  acp-agent run --dir ../shared --mcp "files=npx -y @modelcontextprotocol/server-filesystem" "/mcp tools"`

// newRun is a small ACP client: it starts this program as an editor would, over real pipes.
func newRun(s streams, f *serveFlags) *cobra.Command {
	var r runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] PROMPT [-- COMMAND ARGS...]",
		Short: "Open a session on some folders, send a prompt and print the answer",
		Long: `run starts acp-agent as an editor would, opens a session on the folders, sends the prompt and prints what comes back.

What the agent asks permission for is shown and refused; with --yes it is allowed, once each time: changes of files, calls of
MCP servers' tools, and servers that a folder names and the prompt starts.`,
		Example: runExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			prompt, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				prompt, command = args[:dash], args[dash:]
			}
			text := strings.Join(prompt, " ")
			if strings.TrimSpace(text) == "" {
				return usagef("run needs a prompt, such as /roots; see acp-agent run --help")
			}
			if err := onlyOne(cmd, "load", "resume", "fork"); err != nil {
				return err
			}
			return runPrompt(cmd.Context(), s, *f, r, text, command)
		},
	}
	r.rootFlags(cmd)
	cmd.Flags().StringVar(&r.load, "load", "", "go on with stored session `SESSION`, and show its conversation first")
	cmd.Flags().StringVar(&r.resume, "resume", "", "go on with stored session `SESSION`")
	cmd.Flags().StringVar(&r.fork, "fork", "", "go on with a copy of stored session `SESSION`")
	cmd.Flags().StringArrayVar(&r.mcp, "mcp", nil,
		"give the session an MCP server: `NAME=COMMAND`, whose words are split as by a shell but not expanded; repeat for more")
	cmd.Flags().StringArrayVar(&r.mcpConfigs, "mcp-config", nil,
		"give the session the MCP servers of the JSON `FILE`, {\"mcpServers\": {…}}, whose values are taken as written; repeat for more")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "allow what the agent asks permission for, once each time, instead of refusing it")
	cmd.Flags().BoolVar(&r.json, "json", false, "print every message of both sides instead, one JSON text a line")
	return cmd
}

// rootFlags adds the flags that name folders.
func (r *runFlags) rootFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.cwd, "cwd", ".", "the session's working directory `DIR`")
	cmd.Flags().StringArrayVar(&r.dirs, "dir", nil, "an additional root folder `DIR`; repeat for more")
}

// runPrompt does one turn in a new session of a new agent process.
func runPrompt(ctx context.Context, s streams, f serveFlags, r runFlags, prompt string, command []string) (err error) {
	roots, err := r.roots()
	if err != nil {
		return err
	}
	servers, err := r.mcpServers()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	agent, err := process.Start(ctx, process.Command{Path: self, Args: f.args(command), Name: "acp-agent"}, process.Options{Logger: slog.New(plainLines{s.err})})
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, agent.Stop(stopping))
		var ended *process.ExitError
		if err != nil && errors.As(agent.Wait(stopping), &ended) && ended.Code > 0 {
			err = &statusError{name: ended.Name, status: ended.Code}
		}
	}()
	show := newPrinter(s.out)
	options := client.Options{Name: "acp-agent run", Version: version(), Updates: show.update, Permission: asked{show, r.yes}.permission}
	options.MaxLine = f.maxLine
	if r.json {
		options.Updates, options.Permission = nil, asked{nil, r.yes}.permission
		options.Tap = show.messages
	}
	c := client.New(agent.Stdout(), agent.Stdin(), options)
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- c.Serve(serving) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	reason, err := r.turn(ctx, c, client.Setup{Roots: roots, MCPServers: servers}, prompt)
	if err != nil {
		return explained(err)
	}
	if !r.json {
		show.end(reason)
	}
	return show.err()
}

// turn opens a session, sends the prompt and closes the session.
func (r runFlags) turn(ctx context.Context, c *client.Client, setup client.Setup, prompt string) (sdk.StopReason, error) {
	if _, err := c.Initialize(ctx); err != nil {
		return "", err
	}
	session, err := r.open(ctx, c, setup)
	if err != nil {
		return "", err
	}
	end, err := c.Prompt(ctx, session.ID, sdk.TextBlock(prompt))
	if err != nil {
		return "", err
	}
	return end.StopReason, c.CloseSession(ctx, session.ID)
}

// open opens the session that the flags ask for. The folders given are the whole list, whatever the
// session had before (P3).
func (r runFlags) open(ctx context.Context, c *client.Client, setup client.Setup) (client.Session, error) {
	switch {
	case r.load != "":
		return c.LoadSession(ctx, r.load, setup)
	case r.resume != "":
		return c.ResumeSession(ctx, r.resume, setup)
	case r.fork != "":
		return c.ForkSession(ctx, r.fork, setup)
	default:
		return c.NewSession(ctx, setup)
	}
}

// roots makes the given folders absolute: a shell's relative paths start where the shell is.
func (r runFlags) roots() (workspace.Roots, error) {
	paths, err := absolutePaths(append([]string{r.cwd}, r.dirs...)...)
	if err != nil {
		return workspace.Roots{}, err
	}
	roots, err := workspace.NewRoots(paths[0], paths[1:])
	return roots, flagged(err, "cwd", "dir")
}

// args are the arguments that give the agent process our own flags.
func (f serveFlags) args(command []string) []string {
	args := []string{"--log-level", level{&f.log.level}.String()}
	for name, value := range map[string]string{"--state-dir": f.stateDir, "--log-file": f.log.file, "--trace": f.trace, "--agent": f.agent} {
		if value != "" {
			args = append(args, name, value)
		}
	}
	if f.config != "" {
		args = append(args, "--config", f.config)
	}
	args = append(args, fmt.Sprintf("--max-line=%d", f.maxLine), fmt.Sprintf("--max-roots=%d", f.maxRoots), fmt.Sprintf("--mounts=%s", f.mounts), fmt.Sprintf("--replay-rate=%d", f.replay))
	if len(command) > 0 {
		args = append(append(args, "--"), command...)
	}
	return args
}

// messages is a tap that prints both sides. What MCP servers are given in secret is not shown.
func (p *printer) messages(d jsonrpc.Direction, line []byte) {
	if d == jsonrpc.Sent {
		line = masked(line)
	}
	p.line(d, line)
}

// explained is an error of the agent without the protocol's wrapping.
func explained(err error) error {
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) {
		return err
	}
	var data struct{ Violations []strictjson.Violation }
	if json.Unmarshal(answer.Data, &data) == nil && len(data.Violations) > 0 {
		return flagged(strictjson.Refuse(data.Violations...), "cwd", "dir")
	}
	return errors.New(answer.Message)
}

// flaggedRoot says what is wrong with a folder, and which flag gave it.
func flaggedRoot(e workspace.RootError, cwd, dir string) string {
	switch {
	case e.Root < 0:
		return "--" + dir + ": " + e.Problem() + "; --max-roots N sets another"
	case e.Root == 0:
		dir = cwd
	}
	return fmt.Sprintf("--%s %q %s", dir, e.Path, e.Problem())
}

// flagged says of folders that are refused which flags gave them.
func flagged(err error, cwd, dir string) error {
	if roots := (workspace.RootErrors)(nil); errors.As(err, &roots) {
		first := flaggedRoot(roots[0], cwd, dir)
		if more := len(roots) - 1; more > 0 {
			return fmt.Errorf("%s (and %d more)", first, more)
		}
		return errors.New(first)
	}
	found := slices.Clone(strictjson.ViolationsOf(err))
	if found == nil {
		return err
	}
	for i, v := range found {
		switch v.Field {
		case "cwd":
			found[i].Field = "--" + cwd
		case "additionalDirectories":
			found[i].Field, found[i].Index = "--"+dir, nil
		}
		if v.Reason == strictjson.TooMany {
			found[i].Expected += "; --max-roots N sets another"
		}
	}
	return strictjson.Refuse(found...)
}
