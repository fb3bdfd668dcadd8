package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Sessions are the stored sessions that a picker shows.
type Sessions interface {
	// List returns the sessions, newest activity first.
	List(ctx context.Context) ([]Row, error)
	// Search returns the sessions in which this text was said. Their Detail is the line.
	Search(ctx context.Context, text string) ([]Row, error)
}

// Session is a stored session that the user has chosen.
type Session interface {
	// Print prints the conversation on the terminal.
	Print(ctx context.Context) error
	// Export writes the conversation to a new file, a page in HTML.
	Export(ctx context.Context, file string) error
	// Delete removes the session.
	Delete(ctx context.Context) error
	// Obstacle says why the session cannot be continued, and what to do, or returns "".
	Obstacle() string
	// Chat continues the session, or a copy.
	Chat(ctx context.Context, fork bool) error
}

// Row is a session as a picker shows it. All texts are printable.
type Row struct {
	Session
	ID           string
	Updated      time.Time
	Title, Agent string
	Detail       string // the folders, or the line that was found
}

// picker lets a person choose a stored session on a terminal, and do something with it.
type picker struct {
	keys     keyboard
	sessions Sessions

	found   string // what was searched for, "" for the list of all sessions
	all     []Row  // the sessions, newest first
	filter  string
	shown   []Row  // those of all that match filter
	at, top int    // the chosen row and the first visible one, in shown
	notice  string // shown at the bottom
	ask     *pickerQuestion
	drawn   string // what the terminal shows
}

// pickerQuestion is a question on the last line. A key answers it, or a line if isLine is set.
type pickerQuestion struct {
	text, typed string
	isLine      bool
	answered    func(ctx context.Context, answer string) error
}

// errPicked ends the picker after the user has continued a session or has quit.
var errPicked = errors.New("nothing more to choose")

const pickerHelp = "Enter continue  ^F fork  ^V view  ^E export  ^D delete  ^S search  Esc quit"

// Pick shows sessions on a screen until the user has continued one or quits, and closes the screen.
// It returns the context's error if that ends before, and [context.Canceled] after Ctrl-C.
func Pick(ctx context.Context, c *Screen, sessions Sessions) (err error) {
	p := &picker{keys: keyboard{screen: c}, sessions: sessions}
	if err := p.listAll(ctx); err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for ctx.Err() == nil {
		width, height := c.size()
		if !p.keys.ready() {
			if err := p.draw(width, height); err != nil {
				return err
			}
		}
		key, err := p.keys.next(keyTick)
		if err != nil {
			return err
		}
		if key == "" {
			continue
		}
		switch err := p.press(ctx, key, height); {
		case errors.Is(err, errPicked):
			return nil
		case err != nil && ctx.Err() == nil:
			return err
		}
	}
	return ctx.Err()
}

// draw shows the page if it has changed.
func (p *picker) draw(width, height int) error {
	page := p.page(width, height, time.Now())
	if page == p.drawn {
		return nil
	}
	p.drawn = page
	_, err := p.keys.screen.out.WriteString(page)
	return err
}

// listAll lists all sessions.
func (p *picker) listAll(ctx context.Context) error {
	all, err := p.sessions.List(ctx)
	p.found, p.all = "", all
	p.refilter("")
	return err
}

// matches reports whether a row has all words of a filter.
func (r Row) matches(filter string) bool {
	return text.HasWords(r.Title+" "+r.Agent+" "+r.Detail+" "+r.ID, filter)
}

// refilter shows the sessions that match a filter.
func (p *picker) refilter(filter string) {
	p.filter, p.shown, p.at, p.top = filter, nil, 0, 0
	for _, row := range p.all {
		if row.matches(filter) {
			p.shown = append(p.shown, row)
		}
	}
}

// press handles a key.
func (p *picker) press(ctx context.Context, key string, height int) error {
	p.notice = ""
	if p.ask != nil {
		return p.answer(ctx, key)
	}
	switch key {
	case keyInterrupt:
		return context.Canceled
	case keyEscape:
		switch {
		case p.filter != "":
			p.refilter("")
		case p.found != "":
			return p.listAll(ctx)
		default:
			return errPicked
		}
	case keyUp, "\x10":
		p.at = max(p.at-1, 0)
	case keyDown, "\x0e":
		p.at = min(p.at+1, max(len(p.shown)-1, 0))
	case keyPageUp:
		p.at = max(p.at-pickerRows(height), 0)
	case keyPageDown:
		p.at = min(p.at+pickerRows(height), max(len(p.shown)-1, 0))
	case keyHome:
		p.at = 0
	case keyEnd:
		p.at = max(len(p.shown)-1, 0)
	case keyDelete, "\b":
		p.refilter(withoutLast(p.filter))
	case keyClear:
		p.refilter("")
	case keySuspend:
		return p.outside(p.keys.screen.suspend)
	case "\x13":
		p.ask = &pickerQuestion{text: "Search for: ", isLine: true, answered: p.search}
	default:
		if typed := typedText(key); typed != "" {
			p.refilter(p.filter + lineOf(typed))
		} else if p.at < len(p.shown) {
			return p.act(ctx, key, p.shown[p.at])
		}
	}
	return nil
}

// answer adds a key to the answer to the question, or gives the answer.
func (p *picker) answer(ctx context.Context, key string) error {
	q := p.ask
	switch {
	case key == keyEscape, key == keyInterrupt:
		p.ask = nil
	case !q.isLine:
		p.ask = nil
		return q.answered(ctx, key)
	case key == keyEnter:
		p.ask = nil
		return q.answered(ctx, q.typed)
	case key == keyDelete, key == "\b":
		q.typed = withoutLast(q.typed)
	default:
		q.typed += lineOf(typedText(key))
	}
	return nil
}

// act does something with a session.
func (p *picker) act(ctx context.Context, key string, row Row) error {
	switch key {
	case keyEnter:
		return p.talk(ctx, row, false)
	case "\x06":
		return p.talk(ctx, row, true)
	case "\x16":
		return p.outside(func() error { return p.view(ctx, row) })
	case "\x05":
		p.export(ctx, row)
	case "\x04":
		p.ask = &pickerQuestion{
			text: "Delete " + Cut(row.Title, 40) + " permanently? y/n ",
			answered: func(ctx context.Context, answer string) error {
				if answer != "y" && answer != "Y" || !p.try(ctx, "deleting", row.Delete) {
					return nil
				}
				p.notice = "deleted " + row.Title
				isIt := func(r Row) bool { return r.ID == row.ID }
				p.all, p.shown = slices.DeleteFunc(p.all, isIt), slices.DeleteFunc(p.shown, isIt)
				return nil
			},
		}
	}
	return nil
}

// talk shows a session and continues it, if it can be continued. Then the picker ends.
func (p *picker) talk(ctx context.Context, session Session, fork bool) error {
	if p.notice = session.Obstacle(); p.notice != "" {
		return nil
	}
	err := p.outside(func() error {
		if err := p.show(ctx, session); err != nil && !errors.Is(err, errStopped) {
			return err
		}
		return session.Chat(ctx, fork)
	})
	return cmp.Or(err, errPicked)
}

// errStopped is the error of an action that the user has stopped with Ctrl-C or Escape.
var errStopped = errors.New("stopped")

// untilStopped calls do with a context that ends when the user stops it. Then it returns
// errStopped, unless do succeeded. Other keys are kept for later.
func (p *picker) untilStopped(ctx context.Context, do func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	var (
		watching sync.WaitGroup
		typed    string
	)
	watching.Go(func() {
		for ctx.Err() == nil {
			const pause = 50 * time.Millisecond
			some, err := p.keys.screen.read(pause)
			if typed += some; err != nil || strings.Contains(some, keyInterrupt) ||
				some == keyEscape {
				stop(errStopped)
				typed = ""
			}
		}
	})
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errStopped) {
		err = errStopped
	}
	stop(nil)
	watching.Wait()
	p.keys.typed += typed
	return err
}

// try shows the name of an action, runs it until the user stops it, and reports whether it
// succeeded. If not, the notice says why.
func (p *picker) try(ctx context.Context, what string, do func(context.Context) error) bool {
	p.notice = what + " …; Ctrl-C stops it"
	err := p.draw(p.keys.screen.size())
	if err == nil {
		err = p.untilStopped(ctx, do)
	}
	p.notice = ""
	if err != nil {
		p.notice = text.Plain(err.Error())
	}
	return err == nil
}

// show shows a conversation unless the user stops it, and then reads each key.
func (p *picker) show(ctx context.Context, session Session) error {
	if err := p.keys.screen.listen(); err != nil {
		return err
	}
	err := p.untilStopped(ctx, session.Print)
	p.keys.typed = "" // nobody could see yet what to type
	return err
}

// view shows a conversation until a key is pressed.
func (p *picker) view(ctx context.Context, session Session) error {
	err := p.show(ctx, session)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err == nil {
		_, err = p.keys.screen.out.WriteString("\nPress a key to return: ")
	}
	for key := ""; key == "" && err == nil && ctx.Err() == nil; {
		key, err = p.keys.next(keyTick)
	}
	return err
}

// export writes a conversation to a page in the working directory.
func (p *picker) export(ctx context.Context, row Row) {
	file := "conversation-" + text.Prefix(row.ID, 12) + ".html"
	name := text.Printable(file)
	done := p.try(ctx, "writing "+name, func(ctx context.Context) error {
		return row.Export(ctx, file)
	})
	if done {
		p.notice = "wrote " + name
	}
}

// outside calls do while the terminal is as before.
func (p *picker) outside(do func() error) error {
	if err := p.keys.screen.close(); err != nil {
		return err
	}
	p.drawn = ""
	return errors.Join(do(), p.keys.screen.enter())
}

// search shows the sessions in which a text was said.
func (p *picker) search(ctx context.Context, what string) error {
	var found []Row
	done := p.try(ctx, "searching", func(ctx context.Context) (err error) {
		found, err = p.sessions.Search(ctx, what)
		return err
	})
	if !done {
		return nil
	}
	if len(found) == 0 {
		p.notice = "nothing found"
		return nil
	}
	p.found, p.all = what, found
	p.refilter("")
	return nil
}

// pickerRows returns how many sessions fit on a terminal.
func pickerRows(height int) int { return max(height-2, 1) }

// page returns what the terminal shows.
func (p *picker) page(width, height int, now time.Time) string {
	bottom := p.bottom(width, height)
	rows := max(pickerRows(height)-len(bottom)+1, 1)
	p.at = min(p.at, max(len(p.shown)-1, 0))
	p.top = min(max(p.top, p.at-rows+1), p.at, max(len(p.shown)-rows, 0))
	head := "> " + OneLine(p.filter)
	if p.found != "" {
		head = "found: " + OneLine(p.found) + " " + head
	}
	if p.filter == "" {
		head += "  (type to filter)"
	}
	lines := []string{Cut(head, width-1)}
	for i := p.top; i < min(p.top+rows, len(p.shown)); i++ {
		line := Cut(p.shown[i].fitted(width, now), width-1)
		if i == p.at {
			line = "\x1b[7m" + line + strings.Repeat(" ", max(width-1-Columns(line), 0)) + "\x1b[0m"
		}
		lines = append(lines, line)
	}
	switch {
	case len(p.shown) > 0:
	case len(p.all) > 0:
		lines = append(lines,
			Cut("no session has these words; Backspace removes one letter", width-1))
	default:
		lines = append(lines, Cut("no sessions yet; acp-agent run starts one", width-1))
	}
	lines = lines[max(len(lines)-(height-len(bottom)), 0):]
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\r\n")
	}
	fmt.Fprintf(&b, "\x1b[J\x1b[%d;1H%s\x1b[K", height-len(bottom)+1,
		strings.Join(bottom, "\x1b[K\r\n"))
	return b.String()
}

// bottom returns the last lines of the page: the question, the notice or the keys. If they do not
// fit, the end of a question and the beginning of a notice stay visible.
func (p *picker) bottom(width, height int) []string {
	most := max(height-1, 1)
	switch {
	case p.ask != nil:
		lines := wrapped(p.ask.text+OneLine(p.ask.typed)+"_", width-1)
		return lines[max(len(lines)-most, 0):]
	case p.notice != "":
		lines := wrapped(p.notice, width-1)
		return lines[:min(len(lines), most)]
	}
	return []string{Cut(pickerHelp, width-1)}
}

// fitted returns a row that has at most width columns.
func (r Row) fitted(width int, now time.Time) string {
	padded := func(s string, n int) string {
		s = Cut(s, n)
		return s + strings.Repeat(" ", max(n-Columns(s), 0))
	}
	const when = 11 // of "29 days ago"
	agent, gaps := 12, 3
	if width < 60 {
		agent, gaps = 0, 2
	}
	left := max(width-1-when-agent-gaps, 10)
	line := padded(Since(r.Updated, now), when) + " " + padded(r.Title, left/2)
	if agent > 0 {
		line += " " + padded(r.Agent, agent)
	}
	return line + " " + r.Detail
}
