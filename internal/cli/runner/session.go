// Package runner opens a session as an editor does, sends one prompt, and shows the answer on a
// terminal.
package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/history/sessions"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// Session says which session to open, and how. The zero value is a new one.
type Session struct {
	// Dirs are the additional folders that the user has named, and CwdGiven is set if they have
	// named the working directory.
	Dirs     []string
	CwdGiven bool
	// Load, Resume or Fork is the stored session to continue, and Last means the last one of the
	// working directory. At most one is set.
	Load, Resume, Fork string
	Last               bool
	// Mode and ThoughtLevel are the values to choose in the session, "" for none.
	Mode, ThoughtLevel string
	// Login is a command that signs in to the agent.
	Login string
}

// Turn opens the session, sends the prompt and closes the session. opened gets the session's id.
func (s Session) Turn(
	ctx context.Context, opened func(id string),
	c *client.Client, setup client.Setup, prompt Prompt,
) (client.TurnEnd, error) {
	agent, err := c.Initialize(ctx)
	if err != nil {
		return client.TurnEnd{}, err
	}
	session, roots, err := s.open(ctx, c, setup)
	if err != nil {
		return client.TurnEnd{}, ExplainLogin(agent, err, s.Login)
	}
	if err := s.choose(ctx, c, session); err != nil {
		if s.Fork != "" || s.isNew() {
			err = errors.Join(err, c.DeleteSession(ctx, session.ID))
		}
		return client.TurnEnd{}, err
	}
	opened(text.Plain(session.ID))
	// After an interruption the agent gets some time to end the turn, unless there is another one.
	const grace = 5 * time.Second
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt)
		defer signal.Stop(again)
		_ = c.Cancel(lasting, session.ID)
		select {
		case <-again:
		case <-time.After(grace):
		case <-lasting.Done():
		}
		end()
	})()
	dirs := []string{"."} // relative paths start in the folders first
	for i, dir := range roots.All() {
		dirs = slices.Insert(dirs, i, dir.String())
	}
	done, err := c.Prompt(lasting, session.ID, prompt.Blocks(dirs)...)
	if err != nil {
		return done, err
	}
	return done, c.CloseSession(lasting, session.ID)
}

// open opens the session that the flags select, and returns its folders. A stored session keeps its
// folders unless the flags name others.
func (s Session) open(
	ctx context.Context, c *client.Client, setup client.Setup,
) (opened client.Session, roots workspace.Roots, err error) {
	if s.isNew() {
		setup.OmitAdditional = len(s.Dirs) == 0
		opened, err = c.NewSession(ctx, setup)
		return opened, setup.Roots, err
	}
	session, err := s.find(ctx, c, setup.Roots.Cwd())
	if err != nil {
		return client.Session{}, roots, err
	}
	if len(s.Dirs) == 0 && session.Cwd != "" {
		cwd := session.Cwd
		if s.CwdGiven && !s.Last {
			cwd = setup.Roots.Cwd().String()
		}
		setup.Roots, err = workspace.NewRoots(cwd, session.AdditionalDirectories)
		if err != nil {
			return client.Session{}, roots, err
		}
		setup.OmitAdditional = s.KeepsDirs()
	}
	switch {
	case s.Load != "":
		opened, err = c.LoadSession(ctx, session.ID, setup)
	case s.Fork != "":
		opened, err = c.ForkSession(ctx, session.ID, setup)
	default:
		opened, err = c.ResumeSession(ctx, session.ID, setup)
	}
	return opened, setup.Roots, err
}

// choose sets the mode and the thought level of the session as the flags say.
func (s Session) choose(ctx context.Context, c *client.Client, session client.Session) error {
	type option struct{ ID, Category string }
	var offers struct {
		Modes         json.RawMessage
		ConfigOptions []option
	}
	if err := json.Unmarshal(session.Result, &offers); err != nil {
		return fmt.Errorf("cannot read what the session offers: %w", err)
	}
	for _, flag := range []struct{ name, category, value string }{
		{"mode", "mode", s.Mode}, {"thought-level", "thought_level", s.ThoughtLevel},
	} {
		if flag.value == "" {
			continue
		}
		method, params := protocol.SessionSetConfigOption, map[string]string{"sessionId": session.ID}
		i := slices.IndexFunc(offers.ConfigOptions, func(o option) bool {
			return cmp.Or(o.Category, o.ID) == flag.category
		})
		switch {
		case i >= 0:
			params["configId"], params["value"] = offers.ConfigOptions[i].ID, flag.value
		case flag.name == "mode" && offers.Modes != nil:
			method, params["modeId"] = protocol.SessionSetMode, flag.value
		default:
			return usage.Errorf("--%s: this agent has none to choose from; leave the flag out",
				flag.name)
		}
		if _, err := c.Call(ctx, method, strictjson.Encode(params))(); err != nil {
			return fmt.Errorf("cannot choose --%s %s: %w", flag.name, flag.value, Explain(err))
		}
	}
	return nil
}

// stored returns the name of the stored session to continue, "" if none is named.
func (s Session) stored() string { return cmp.Or(s.Load, s.Resume, s.Fork) }

func (s Session) isNew() bool { return s.stored() == "" && !s.Last }

// KeepsDirs reports whether the agent process keeps the folders of a stored session by itself.
func (s Session) KeepsDirs() bool { return len(s.Dirs) == 0 && !s.isNew() }

// find returns the stored session to continue: the one that a flag names, or the last one of cwd.
// A session that is not listed has only an id.
func (s Session) find(
	ctx context.Context, c *client.Client, cwd workspace.Dir,
) (client.SessionInfo, error) {
	var q client.Query
	name := s.stored()
	if s.Last {
		q.Cwd, name = cwd, sessions.Last
	}
	found, ok, err := sessions.Named(c.Sessions(ctx, q),
		func(info client.SessionInfo) string { return info.ID }, name)
	switch {
	case ok, err != nil:
		return found, err
	case s.Last:
		return found, fmt.Errorf("this agent has no session in %s to continue: acp-agent sessions "+
			"lists those of all agents, and without --continue a new one is started", cwd)
	case name == sessions.Last:
		return found, errors.New("there is no session yet; without the flag a new one is started")
	}
	return client.SessionInfo{ID: name}, nil
}

// Explain returns an error of the agent in the form in which a command line reports it.
func Explain(err error) error {
	if errors.As(err, new(*jsonrpc.TooLongError)) {
		return fmt.Errorf("%w; --max-line changes it", err)
	}
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return err
	}
	var data struct{ Violations []strictjson.Violation }
	if json.Unmarshal(answer.Data, &data) == nil && len(data.Violations) > 0 {
		return usage.WithFlagNames(strictjson.Refuse(data.Violations...), "cwd", "dir")
	}
	if answer.Code == protocol.CodeNotFound {
		return fmt.Errorf("%s; acp-agent sessions list shows the sessions", answer.Message)
	}
	// Agents often put the cause there and answer with a message like "Internal error".
	message, cause := answer.Message, terminal.Sentences(answer.Data)
	if cause != "" && !strings.Contains(message, cause) {
		message = fmt.Sprintf("%s: %s", strings.TrimRight(message, ".: "), cause)
	}
	if strings.HasPrefix(message, "Internal error") {
		message = "the agent answered with an error: " + message + "; run its command " +
			"in a terminal to see more"
	}
	return errors.New(message)
}

// ExplainLogin returns an error for an agent that wants the user to sign in before it does what
// failed with err, or err. login is a command that signs in.
func ExplainLogin(agent client.Agent, err error, login string) error {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code != protocol.CodeAuthRequired {
		return err
	}
	var offers struct {
		AuthMethods []struct{ Name, Description string }
	}
	_ = json.Unmarshal(agent.Raw, &offers) // absent members are left out
	ways := ""
	for _, way := range offers.AuthMethods {
		described := strings.Trim(way.Name+": "+way.Description, ": ")
		ways += fmt.Sprintf(" (%s)", text.Line(text.Plain(described), 200))
	}
	said, _, _ := strings.Cut(refused.Message, " (if your editor") // what acp-agent says to editors
	return fmt.Errorf("the agent wants you to sign in: %s%s; run %s in a terminal, then try again",
		strings.TrimRight(said, "."), ways, login)
}

// Connect returns a client of an agent that serve runs in this process. end closes the connection,
// and returns why serve or the client has failed.
func Connect(
	ctx context.Context, o client.Options,
	serve func(ctx context.Context, in io.Reader, out io.Writer) error,
) (c *client.Client, end func() error) {
	agentIn, out := io.Pipe()
	in, agentOut := io.Pipe()
	c = client.New(in, out, o)
	ended := make(chan error, 2)
	go func() {
		err := serve(ctx, agentIn, agentOut)
		ended <- errors.Join(err, agentIn.Close(), agentOut.Close())
	}()
	go func() { ended <- c.Serve(ctx) }()
	return c, func() error {
		return errors.Join(out.Close(), <-ended, <-ended)
	}
}
