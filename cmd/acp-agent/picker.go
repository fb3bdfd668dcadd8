package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// picker lets a person choose a stored session on a terminal, and do something with it.
type picker struct {
	screen *screen
	keys   keyboard
	s      streams
	set    *settings
	store  sessionstore.Store

	rest  func() (sessionstore.Session, error, bool) // yields the sessions that are not in all
	stop  func()
	ended bool         // rest has no more
	all   []*pickerRow // the sessions that were read, newest first
	shown []*pickerRow // those of them that match filter
	read  int          // the number of sessions in all that were compared with filter

	filter  string
	at, top int    // the chosen row and the first visible one, in shown
	found   string // what was searched for, "" for the list of all sessions
	notice  string // shown at the bottom
	ask     *pickerQuestion
	drawn   string // what the terminal shows
}

// pickerRow is a session as it is shown.
type pickerRow struct {
	id           sessionstore.ID
	updated      time.Time
	title, agent string
	dirs         string // the folders, or the line that was found
	comparable   string // with the filter
}

// pickerQuestion is a question on the last line. A key answers it, or a line if isLine is set.
type pickerQuestion struct {
	text, typed string
	isLine      bool
	answered    func(ctx context.Context, answer string) error
}

// errPicked ends the picker: what was chosen has been done, or nothing was.
var errPicked = errors.New("nothing more to choose")

const pickerHelp = "Enter continue  ^F fork  ^V view  ^E export  ^D delete  ^S search  Esc quit"

// pickSession shows the sessions of a store until the user has chosen one or quits.
func pickSession(
	ctx context.Context, c *screen, s streams, set *settings, store sessionstore.Store,
) (err error) {
	p := &picker{screen: c, keys: keyboard{screen: c}, s: s, set: set, store: store}
	p.listAll(ctx)
	defer func() {
		p.stop()
		err = errors.Join(err, c.close())
	}()
	for ctx.Err() == nil {
		width, height := c.size()
		wait := time.Duration(0)
		if !p.keys.ready() {
			if wait = keyTick; p.wants(height) {
				wait = 0
				if err := p.readSome(); err != nil {
					return err
				}
			}
			if err := p.draw(width, height); err != nil {
				return err
			}
		}
		key, err := p.keys.next(wait)
		if err != nil {
			return err
		}
		if key == "" {
			continue
		}
		// A key is about the sessions that its user expects, which may not have been read yet.
		for typedText(key) == "" && p.wants(height) || key == keyEnd && !p.complete() {
			if err := p.readSome(); err != nil {
				return err
			}
		}
		switch err := p.press(ctx, key, height); {
		case errors.Is(err, errPicked):
			return nil
		case err != nil && ctx.Err() == nil:
			return err
		}
	}
	return &statusError{statusInterrupted}
}

// draw shows the page if it is another one than before.
func (p *picker) draw(width, height int) error {
	page := p.page(width, height, time.Now())
	if page == p.drawn {
		return nil
	}
	p.drawn = page
	_, err := io.WriteString(p.s.out, page)
	return err
}

// listAll begins the list of all sessions.
func (p *picker) listAll(ctx context.Context) {
	sessions := listed(ctx, p.store, sessionstore.Query{Archive: sessionstore.WithoutArchived})
	p.restart(sessions)
	p.found = ""
}

func (p *picker) restart(sessions iter.Seq2[sessionstore.Session, error]) {
	if p.stop != nil {
		p.stop()
	}
	next, stop := iter.Pull2(sessions)
	p.rest, p.stop, p.ended = next, stop, false
	p.all, p.shown, p.read, p.at, p.top = nil, nil, 0, 0, 0
}

// wants reports whether the page needs sessions that were not read yet.
func (p *picker) wants(height int) bool {
	return !p.complete() && len(p.shown) <= max(p.at, p.top)+height
}

// complete reports whether all sessions were read and compared with the filter.
func (p *picker) complete() bool { return p.ended && p.read == len(p.all) }

// readSome reads some sessions and compares them with the filter.
func (p *picker) readSome() error {
	const atOnce = 1000
	for n := 0; n < atOnce; n++ {
		if p.read == len(p.all) {
			if p.ended {
				return nil
			}
			session, err, ok := p.rest()
			if err != nil {
				return err
			}
			if p.ended = !ok; p.ended {
				return nil
			}
			p.all = append(p.all, rowOf(session))
		}
		if row := p.all[p.read]; row.matches(p.filter) {
			p.shown = append(p.shown, row)
		}
		p.read++
	}
	return nil
}

func rowOf(one sessionstore.Session) *pickerRow {
	r := &pickerRow{
		id: one.ID, updated: one.Updated, title: cmp.Or(titleColumn(one), "-"),
		agent: text.Printable(report(one).Agent),
		dirs:  folders(one.Keys.Roots.All(), fromHome),
	}
	r.comparable = strings.ToLower(r.title + " " + r.agent + " " + r.dirs + " " + string(r.id))
	return r
}

// matches reports whether a row has all words of a filter.
func (r *pickerRow) matches(filter string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(r.comparable, word) {
			return false
		}
	}
	return true
}

// refilter changes the filter. Sessions that were read are compared again.
func (p *picker) refilter(filter string) {
	p.filter, p.shown, p.read, p.at, p.top = filter, nil, 0, 0, 0
}

// chosen returns the row at the cursor, nil if there is none.
func (p *picker) chosen() *pickerRow {
	if p.at >= len(p.shown) {
		return nil
	}
	return p.shown[p.at]
}

// press does what a key means.
func (p *picker) press(ctx context.Context, key string, height int) error {
	p.notice = ""
	if p.ask != nil {
		return p.answer(ctx, key)
	}
	switch key {
	case keyInterrupt:
		return errPicked
	case keyEscape:
		switch {
		case p.filter != "":
			p.refilter("")
		case p.found != "":
			p.listAll(ctx)
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
		return p.outside(p.screen.suspend)
	case "\x13":
		p.ask = &pickerQuestion{text: "Search for: ", isLine: true, answered: p.search}
	default:
		if typed := typedText(key); typed != "" {
			p.refilter(p.filter + lineOf(typed))
		} else if row := p.chosen(); row != nil {
			return p.act(ctx, key, row)
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
func (p *picker) act(ctx context.Context, key string, row *pickerRow) error {
	one, err := p.store.Get(ctx, row.id)
	if err != nil {
		p.notice = text.Plain(err.Error())
		return nil
	}
	switch key {
	case keyEnter:
		return p.talk(ctx, one, "--resume")
	case "\x06":
		return p.talk(ctx, one, "--fork")
	case "\x16":
		return p.outside(func() error { return p.view(ctx, one) })
	case "\x05":
		return p.export(ctx, one)
	case "\x04":
		p.ask = &pickerQuestion{
			text: "Delete " + cut(row.title, 40) + " permanently? y/n ",
			answered: func(ctx context.Context, answer string) error {
				remove := func(ctx context.Context) error { return p.store.Delete(ctx, one.ID) }
				if answer != "y" && answer != "Y" || !p.try(ctx, "deleting", remove) {
					return nil
				}
				p.notice = "deleted " + row.title
				isIt := func(r *pickerRow) bool { return r == row }
				p.all, p.shown = slices.DeleteFunc(p.all, isIt), slices.DeleteFunc(p.shown, isIt)
				p.read--
				return nil
			},
		}
	}
	return nil
}

// errStopped ends what the user has stopped with Ctrl-C or Escape.
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
			some, err := p.screen.read(pause)
			if typed += some; err != nil || strings.Contains(some, keyInterrupt) || some == keyEscape {
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

// try shows what is done, does it until the user stops it, and reports whether it was done. If not,
// the notice says why.
func (p *picker) try(ctx context.Context, what string, do func(context.Context) error) bool {
	p.notice = what + " …; Ctrl-C stops it"
	err := p.draw(p.screen.size())
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
func (p *picker) show(ctx context.Context, one sessionstore.Session) error {
	if err := p.screen.listen(); err != nil {
		return err
	}
	err := p.untilStopped(ctx, func(ctx context.Context) error {
		return showSession(ctx, p.s.out, p.store, one)
	})
	p.keys.typed = "" // nobody could see yet what to type
	return err
}

// view shows a conversation until a key is pressed.
func (p *picker) view(ctx context.Context, one sessionstore.Session) error {
	err := p.show(ctx, one)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err == nil {
		_, err = io.WriteString(p.s.out, "\nPress a key to return: ")
	}
	for key := ""; key == "" && err == nil && ctx.Err() == nil; {
		key, err = p.keys.next(keyTick)
	}
	return err
}

// export writes a conversation to a page in the working directory.
func (p *picker) export(ctx context.Context, one sessionstore.Session) error {
	f := exportFlags{format: "html",
		output: "conversation-" + text.Prefix(string(one.ID), 12) + ".html"}
	write, err := f.writer()
	if err != nil {
		return err
	}
	name := text.Printable(f.output)
	done := p.try(ctx, "writing "+name, func(ctx context.Context) error {
		return f.export(ctx, streams{in: p.s.in, out: p.s.out, err: io.Discard}, p.store, one, write)
	})
	if done {
		p.notice = "wrote " + name
	}
	return nil
}

// outside calls do while the terminal is as before.
func (p *picker) outside(do func() error) error {
	if err := p.screen.close(); err != nil {
		return err
	}
	p.drawn = ""
	return errors.Join(do(), p.screen.enter())
}

// search shows the sessions in which a text was said.
func (p *picker) search(ctx context.Context, what string) error {
	q := sessionstore.SearchQuery{Text: what, Limit: sessionstore.MaxPageSize}
	var found []sessionstore.Found
	done := p.try(ctx, "searching", func(ctx context.Context) (err error) {
		found, err = search(ctx, io.Discard, p.store, q)
		return err
	})
	if !done {
		return nil
	}
	if len(found) == 0 {
		p.notice = "nothing found"
		return nil
	}
	p.restart(func(func(sessionstore.Session, error) bool) {})
	p.filter, p.found = "", what
	seen := make(map[sessionstore.ID]bool)
	for _, one := range found {
		if !seen[one.Session.ID] {
			seen[one.Session.ID] = true
			row := rowOf(one.Session)
			row.dirs = plainLine(one.Line)
			p.all = append(p.all, row)
		}
	}
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
	head := "> " + plainLine(p.filter)
	if p.found != "" {
		head = "found: " + plainLine(p.found) + " " + head
	}
	if p.filter == "" {
		head += "  (type to filter)"
	}
	lines := []string{cut(head, width-1)}
	for i := p.top; i < min(p.top+rows, len(p.shown)); i++ {
		line := cut(p.shown[i].fitted(width, now), width-1)
		if i == p.at {
			line = "\x1b[7m" + line + strings.Repeat(" ", max(width-1-columns(line), 0)) + "\x1b[0m"
		}
		lines = append(lines, line)
	}
	switch {
	case len(p.shown) > 0 || !p.complete():
	case len(p.all) > 0:
		lines = append(lines, cut("no session has these words; Backspace removes one letter", width-1))
	default:
		lines = append(lines, cut("no sessions yet; acp-agent run starts one", width-1))
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

// bottom returns the last lines of the page: the question, the notice or the keys. Of a text that
// does not fit, the end of a question stays visible, and the beginning of a notice.
func (p *picker) bottom(width, height int) []string {
	most := max(height-1, 1)
	switch {
	case p.ask != nil:
		lines := wrapped(p.ask.text+plainLine(p.ask.typed)+"_", width-1)
		return lines[max(len(lines)-most, 0):]
	case p.notice != "":
		lines := wrapped(p.notice, width-1)
		return lines[:min(len(lines), most)]
	}
	return []string{cut(pickerHelp, width-1)}
}

// wrapped returns a line as lines of at most width columns, so that a command can be copied.
func wrapped(line string, width int) (lines []string) {
	for columns(line) > width {
		n := prefixColumns(line, max(width, 1))
		if space := strings.LastIndexByte(line[:n], ' '); space > 0 {
			n = space + 1
		}
		lines, line = append(lines, line[:n]), line[n:]
	}
	return append(lines, line)
}

// fitted returns a row that has at most width columns.
func (r *pickerRow) fitted(width int, now time.Time) string {
	padded := func(s string, n int) string {
		s = cut(s, n)
		return s + strings.Repeat(" ", max(n-columns(s), 0))
	}
	const when = 11 // of "29 days ago"
	agent, gaps := 12, 3
	if width < 60 {
		agent, gaps = 0, 2
	}
	left := max(width-1-when-agent-gaps, 10)
	line := padded(since(r.updated, now), when) + " " + padded(r.title, left/2)
	if agent > 0 {
		line += " " + padded(r.agent, agent)
	}
	return line + " " + r.dirs
}
