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

	session sessionstore.NewSession // without Keys
	charges []sessionstore.Charge
	roots   workspace.Roots
	updates int
}

// NewImport reads the session in a file of this name, whose lines have up to maxLine bytes.
func NewImport(file io.Reader, name string, maxLine int) (*Import, error) {
	i := &Import{lines: jsonrpc.NewReader(file, maxLine), name: name}
	return i, i.describe(i.readSession())
}

// MoveTo gives the session other folders.
func (i *Import) MoveTo(roots workspace.Roots) { i.roots = roots }

// describe adds to an error which line of the file it is about.
func (i *Import) describe(err error) error {
	if at, ok := errors.AsType[*lineError](err); ok {
		return fmt.Errorf("%s, line %d: %w", i.name, i.line, at.err)
	}
	return err
}

// lineError says what is wrong with a line of an exported session.
type lineError struct{ err error }

func (e *lineError) Error() string { return e.err.Error() }

func (e *lineError) Unwrap() error { return e.err }

// next returns the next line that is not blank. The error is io.EOF after the last one.
func (i *Import) next() ([]byte, error) {
	for {
		i.line++
		line, err := i.lines.Append(nil)
		if errors.As(err, new(*jsonrpc.TooLongError)) {
			return nil, &lineError{fmt.Errorf("%w; --max-line raises it", err)}
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
		Charges               []exportedCharge
	}
	if json.Unmarshal(line, &said) != nil || said.SessionID == "" || said.Agent == "" {
		return &lineError{errors.New(
			"it is not a session that acp-agent sessions export --format json wrote")}
	}
	if !isPlainID(said.SessionID) {
		said.SessionID = string(sessionstore.NewID())
	}
	kind, profile, _ := strings.Cut(said.Agent, " ")
	if !slices.Contains([]string{explore.Kind, model.Kind, proxy.Kind}, kind) {
		return &lineError{fmt.Errorf("its agent %s is not known to this version: update acp-agent",
			text.Name(said.Agent))}
	}
	i.session = sessionstore.NewSession{
		ID:    sessionstore.ID(said.SessionID),
		Agent: sessionstore.Agent{Kind: kind, Profile: profile},
		Title: text.Line(said.Title, 1000),
	}
	for _, c := range said.Charges {
		i.charges = append(i.charges, c.charge())
	}
	if err := sessionstore.ValidateCharges(i.charges); err != nil {
		return &lineError{err}
	}
	if i.roots, err = workspace.NewRoots(said.Cwd, said.AdditionalDirectories); err != nil {
		return &lineError{err}
	}
	i.roots = i.roots.ReadOnlyAt(said.ReadOnlyDirectories)
	return nil
}

// isPlainID reports whether a session may keep its id: one that terminals show and commands take.
func isPlainID(id string) bool {
	const most = 128
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return id != Last && !strings.HasPrefix(id, "-") && len(id) <= most &&
		!strings.ContainsFunc(id, odd)
}

// Open opens the folders of the session, as it must be stored with them.
func (i *Import) Open(ctx context.Context, o workspace.Options) error {
	w, err := workspace.Open(ctx, i.roots, o)
	if err != nil {
		return fmt.Errorf("%w; name the session's folders on this machine with --cwd and --dir", err)
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
	err = i.create(ctx, store)
	return i.session.ID, i.updates, i.describe(err)
}

// create is Store.
func (i *Import) create(ctx context.Context, store sessionstore.Store) error {
	lease, err := store.Create(ctx, i.session)
	if errors.Is(err, sessionstore.ErrExists) {
		i.session.ID = sessionstore.NewID()
		i.charges = nil // the other one has them
		lease, err = store.Create(ctx, i.session)
	}
	if err != nil {
		return err
	}
	err = i.record(ctx, recording{store: store, lease: lease})
	if err == nil {
		err = store.Charge(ctx, lease, i.charges)
	}
	if err != nil {
		return errors.Join(err, store.Delete(context.WithoutCancel(ctx), lease.ID))
	}
	return nil
}

// record gives the session the updates on the remaining lines as its history.
func (i *Import) record(ctx context.Context, r recording) error {
	for {
		line, err := i.next()
		if err == io.EOF {
			return r.end(ctx)
		}
		if err != nil {
			return err
		}
		u, err := sessionstore.ParseUpdate(line)
		if err != nil {
			return &lineError{err}
		}
		if err := r.add(ctx, u); err != nil {
			return err
		}
		i.updates++
	}
}

// recording records updates as turns: each begins with the blocks of a prompt.
type recording struct {
	store  sessionstore.Histories
	lease  sessionstore.Lease
	turn   int64 // 0 before the first one
	prompt []sessionstore.Update
	rest   []sessionstore.Update // not yet stored
	size   int                   // of rest, in bytes
}

func (r *recording) add(ctx context.Context, u sessionstore.Update) error {
	if u.Kind == sessionstore.UserMessageChunk {
		if len(r.prompt) == 0 {
			if err := r.end(ctx); err != nil {
				return err
			}
		}
		r.prompt = append(r.prompt, u)
		return nil
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.rest = append(r.rest, u)
	if r.size += len(u.Raw); r.size < 1<<20 {
		return nil
	}
	return r.flush(ctx)
}

// begin begins the turn with the prompt that was read.
func (r *recording) begin(ctx context.Context) (err error) {
	if len(r.prompt) > 0 {
		r.turn, err = r.store.BeginTurn(ctx, r.lease, sessionstore.Turn{Prompt: r.prompt})
		r.prompt = nil
	}
	return err
}

// flush stores what was read of a turn.
func (r *recording) flush(ctx context.Context) error {
	err := r.store.Append(ctx, r.lease, r.rest)
	r.rest, r.size = nil, 0
	return err
}

// end ends the turn.
func (r *recording) end(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.flush(ctx); err != nil || r.turn == 0 {
		return err
	}
	return r.store.EndTurn(ctx, r.lease, r.turn)
}
