package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/acp/model"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Import stores an exported session.
type Import struct {
	lines *jsonrpc.Reader
	name  string // of the file
	line  int    // the number of the last line that was read

	session sessionstore.Session // without Keys
	charges []sessionstore.Charge
	roots   workspace.Roots
	updates int
}

// NewImport reads the session in a file of this name, whose lines have up to maxLine bytes.
func NewImport(file io.Reader, name string, maxLine int) (*Import, error) {
	i := &Import{lines: jsonrpc.NewReader(file, maxLine), name: name}
	return i, i.readSession()
}

// MoveTo gives the session other folders.
func (i *Import) MoveTo(roots workspace.Roots) { i.roots = roots }

// wrong returns an error about the last line that was read.
func (i *Import) wrong(err error) error {
	return fmt.Errorf("%s, line %d: %w", i.name, i.line, err)
}

// next returns the next line that is not blank. The error is io.EOF after the last one.
func (i *Import) next() ([]byte, error) {
	for {
		i.line++
		line, err := i.lines.Append(nil)
		if _, ok := errors.AsType[*jsonrpc.TooLongError](err); ok {
			return nil, i.wrong(fmt.Errorf("%w; --max-line raises it", err))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 || err != nil {
			return line, err
		}
	}
}

// readSession reads the first line.
func (i *Import) readSession() error {
	line, err := i.next()
	if err != nil && err != io.EOF {
		return err
	}
	var said struct {
		SessionID             string
		Agent, Title          string
		Cwd                   string
		AdditionalDirectories []string
		ReadOnlyDirectories   []string
		Charges               []sessionstore.Charge
	}
	if json.Unmarshal(line, &said) != nil || said.SessionID == "" || said.Agent == "" {
		return i.wrong(errors.New(
			"it is not a session that acp-agent sessions export --format json wrote"))
	}
	if !isPlainID(said.SessionID) {
		said.SessionID = string(sessionstore.NewID())
	}
	kind, profile, _ := strings.Cut(said.Agent, " ")
	if !slices.Contains([]string{explore.Kind, model.Kind, proxy.Kind}, kind) {
		return i.wrong(fmt.Errorf("its agent %s is not known to this version: update acp-agent",
			text.Name(said.Agent)))
	}
	i.session = sessionstore.Session{
		ID:    sessionstore.ID(said.SessionID),
		Agent: sessionstore.Agent{Kind: kind, Profile: profile},
		Title: text.Line(said.Title, 1000),
	}
	i.charges = said.Charges
	if err := sessionstore.ValidateCharges(said.Charges); err != nil {
		return i.wrong(err)
	}
	if i.roots, err = workspace.NewRoots(said.Cwd, said.AdditionalDirectories); err != nil {
		return i.wrong(err)
	}
	i.roots = i.roots.ReadOnlyAt(said.ReadOnlyDirectories)
	return nil
}

// isPlainID reports whether a session may keep its id: one that terminals show and commands take.
func isPlainID(id string) bool {
	const most = 128
	odd := func(r rune) bool {
		return r > unicode.MaxASCII ||
			r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return id != Last && !strings.HasPrefix(id, "-") && len(id) <= most &&
		!strings.ContainsFunc(id, odd)
}

// Open opens the folders of the session, as it must be stored with them.
func (i *Import) Open(ctx context.Context, o workspace.Options) error {
	w, err := workspace.Open(ctx, i.roots, o)
	if err != nil {
		return fmt.Errorf("%w; name the session's folders on this machine with --cwd and --dir",
			err)
	}
	defer w.Close()
	i.session.Keys = sessionstore.Keys{Roots: w.Roots()}
	for _, root := range w.Opened() {
		i.session.Keys.Real = append(i.session.Keys.Real, root.Recorded())
	}
	return nil
}

// Store stores the session, with another id if its own is taken, and gives it its history.
//
// If it fails, nothing of the session is stored.
func (i *Import) Store(
	ctx context.Context, store sessionstore.Store,
) (id sessionstore.ID, updates int, err error) {
	history, err := store.NewDraft(ctx, "")
	if err != nil {
		return "", 0, err
	}
	if err = sessionstore.Fill(ctx, history, i.history); err == nil {
		if _, err := store.Get(ctx, i.session.ID); err == nil {
			i.session.ID = sessionstore.NewID()
			i.charges = nil // the other one has them
		}
		i.session.Created = time.Now()
		i.session.Updated = i.session.Created
		var stored bool
		stored, err = store.Restore(ctx, i.session, history, i.charges)
		if err == nil && !stored {
			err = sessionstore.ErrExists // since a moment ago
		}
	}
	if err != nil {
		err = errors.Join(err, history.Discard(context.WithoutCancel(ctx)))
	}
	return i.session.ID, i.updates, err
}

// history yields the updates on the remaining lines. It counts them, and the turns.
func (i *Import) history(yield func(sessionstore.Update, error) bool) {
	for turns := (sessionstore.TurnCounter{}); ; i.updates++ {
		line, err := i.next()
		if err == io.EOF {
			return
		}
		var u sessionstore.Update
		if err == nil {
			if u, err = sessionstore.ParseUpdate(line); err != nil {
				err = i.wrong(err)
			}
		}
		i.session.Turns, _ = turns.Next(u)
		if !yield(u, err) {
			return
		}
	}
}
