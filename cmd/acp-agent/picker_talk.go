package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/internal/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// talk asks for prompts and continues a session, or a copy of it, with them. Then the picker ends.
func (p *picker) talk(ctx context.Context, one sessionstore.Session, flag string) error {
	if p.notice = p.set.obstacle(one); p.notice != "" {
		return nil
	}
	if one.Agent.Kind == model.Kind && p.set.soleModel() == "" {
		ids := p.set.config.modelIDs()
		p.ask = &pickerQuestion{
			text: "Which model (" + strings.Join(ids, ", ") + ")? ", isLine: true,
			answered: func(ctx context.Context, id string) error {
				switch {
				case id == "":
					return nil
				case !slices.Contains(ids, id):
					p.notice = "there is no model " + text.Name(id)
					return nil
				}
				return p.talkTo(ctx, one, flag, "--model="+id)
			},
		}
		return nil
	}
	return p.talkTo(ctx, one, flag, p.set.agentFlags(one.Agent)...)
}

// talkTo continues a session with the agent that flags name.
func (p *picker) talkTo(
	ctx context.Context, one sessionstore.Session, flag string, agent ...string,
) error {
	err := p.outside(func() error {
		if err := p.show(ctx, one); err != nil && !errors.Is(err, errStopped) {
			return err
		}
		for id := string(one.ID); ; {
			prompt, err := p.readPrompt(ctx)
			if err != nil || strings.TrimSpace(prompt) == "" {
				return err
			}
			args := append([]string{"run", flag, id}, p.set.here("state-dir", "store")...)
			if strings.HasPrefix(prompt, "-") {
				prompt = " " + prompt // it is no flag
			}
			heard := &sessionLine{w: p.s.err}
			status := run(ctx, append(append(args, agent...), prompt),
				streams{in: p.s.in, out: p.s.out, err: heard})
			if ctx.Err() != nil {
				return &statusError{status}
			}
			if heard.id != "" { // otherwise it did not start, and may next time
				id, flag = heard.id, "--resume"
			}
		}
	})
	return cmp.Or(err, errPicked)
}

// obstacle says why the picker cannot continue a session, and what to do, or returns "".
func (set *settings) obstacle(one sessionstore.Session) string {
	if _, command := set.agentArguments(one.Agent); command != "" {
		// A stored name may mean another program here, or come from an imported session.
		return "to start its agent, run: " + set.continueLine(one, string(one.ID))
	}
	if one.Agent.Kind == model.Kind && len(set.config.Models) == 0 {
		return "no model is configured; acp-agent models explains how to add one"
	}
	for _, dir := range one.Keys.Roots.All() {
		if path := dir.String(); !namedfile.IsDir(path) {
			return fmt.Sprintf("the folder %s does not exist: create it, or run: acp-agent sessions move "+
				"%s NEW-FOLDER", text.Printable(path), text.ShellWord(path))
		}
	}
	return ""
}

// agentFlags returns the flags that choose the agent of a session that has no obstacle.
func (set *settings) agentFlags(owner sessionstore.Agent) []string {
	if flags, _ := set.agentArguments(owner); flags != nil {
		return flags
	}
	return []string{"--agent=", "--model="}
}

// sessionLine passes on standard error of run, except the line that names the session.
type sessionLine struct {
	w  io.Writer
	id string
}

func (l *sessionLine) Write(b []byte) (int, error) {
	if id, ok := strings.CutPrefix(string(b), "session "); ok {
		l.id = strings.TrimSpace(id)
		return len(b), nil
	}
	return l.w.Write(b)
}

// readPrompt returns a prompt that the user types, "" to end. A pasted text may have several lines.
func (p *picker) readPrompt(ctx context.Context) (prompt string, err error) {
	discardTyped(p.screen.in) // nobody could see yet what to type
	e := promptEditor{screen: p.screen, out: p.s.out}
	if err := e.begin(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.end()) }()
	for ctx.Err() == nil {
		if !p.keys.ready() {
			if err := e.draw(); err != nil {
				return "", err
			}
		}
		key, err := p.keys.next(keyTick)
		if err != nil {
			return "", err
		}
		switch key {
		case keyEnter, "\n":
			return e.typed, nil
		case keyInterrupt:
			return "", nil
		case keyEndOfInput:
			if e.typed == "" {
				return "", nil
			}
		case "\x1b" + keyEnter: // with Alt
			e.typed += "\n"
		case keyDelete, "\b":
			e.typed = withoutLast(e.typed)
		case keyClear:
			e.typed = ""
		case keySuspend:
			err = errors.Join(e.end(), p.screen.suspend(), e.begin())
			if err != nil {
				return "", err
			}
		default:
			e.typed += typedText(key)
		}
	}
	return "", context.Cause(ctx)
}

// promptEditor shows a prompt while it is typed.
type promptEditor struct {
	screen *screen
	out    io.Writer
	typed  string
	shown  []string // the lines on the terminal
}

// begin begins to show it below what the terminal shows.
func (e *promptEditor) begin() error {
	e.shown = nil
	_, err := io.WriteString(e.out, "\n\x1b[?2004h")
	return errors.Join(err, e.screen.listen())
}

// draw shows the end of the prompt, as much as fits, if that has changed.
func (e *promptEditor) draw() error {
	width, height := e.screen.size()
	var lines []string
	for line := range strings.SplitSeq("Your prompt (empty to end): "+e.typed, "\n") {
		lines = append(lines, wrapped(plainLine(line), width-1)...)
	}
	lines = lines[max(len(lines)-max(height-1, 1), 0):]
	if slices.Equal(lines, e.shown) {
		return nil
	}
	up := ""
	if n := len(e.shown) - 1; n > 0 {
		up = fmt.Sprintf("\x1b[%dA", n)
	}
	e.shown = lines
	_, err := io.WriteString(e.out, up+"\r\x1b[J"+strings.Join(lines, "\r\n"))
	return err
}

// end leaves the prompt on the terminal.
func (e *promptEditor) end() error {
	_, err := io.WriteString(e.out, "\x1b[?2004l\n")
	return errors.Join(err, e.screen.restore())
}
