package serve

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// unattended is after which time without a sign of its user a session is worth a notification,
	// and the time between two of them.
	unattended = 3 * time.Minute
	// notifyTimeout is how long the command may take.
	notifyTimeout = 10 * time.Second
	// maxNotifying is how many commands run at once.
	maxNotifying = 4
)

// notifier runs a command when something waits for a user in a session in which the user has done
// nothing for a while.
type notifier struct {
	command *process.Command // nil if nobody is told
	store   sessionstore.Shared
	log     *slog.Logger
	now     func() time.Time

	mu       sync.Mutex
	sessions map[attended]*attention
	devices  []notification // that were paired
}

// attended is a session with its user.
type attended struct {
	user    string
	session sessionstore.ID
}

// attention has the known state of a session that may need its user.
type attention struct {
	seen      time.Time // when the user last did something there, or was told something
	turns     int       // that are running
	questions int       // that are open
	event     string    // that the user was not told, or ""
	at        time.Time // of the event
}

// notification tells the user about an event in a session, or about a device.
type notification struct {
	attended
	event  string // question, turn_ended, turn_failed or device_paired
	at     time.Time
	device Token
}

func newNotifier(o Options) *notifier {
	return &notifier{command: o.Notify, store: o.Store, log: o.Log, now: time.Now,
		sessions: make(map[attended]*attention)}
}

// observe notes what has happened on a connection of a user.
func (n *notifier) observe(user string, e acp.Event) {
	if n.command == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	switch e := e.(type) {
	case acp.RequestEvent:
		// Programs resume a session without a person when their connection was lost. A prompt
		// counts when its turn begins: it is answered after the end of the turn, which is news. The
		// session can be any text, also of a failed request.
		a := n.sessions[attended{user, e.Session}]
		if a != nil && e.Method != protocol.SessionResume && e.Method != protocol.SessionPrompt {
			a.look(now.Add(-e.Duration))
		}
	case acp.AnswerEvent:
		if e.Choice != "" && e.Rule == "" {
			n.of(user, e.Session).look(now)
		}
	case acp.QuestionEvent:
		n.of(user, e.Session).ask(e.Open, now)
	case acp.TurnEvent:
		n.of(user, e.Session).turn(e, now)
	}
}

// paired notes that a device of a user was paired.
func (n *notifier) paired(user string, device Token) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.command != nil {
		n.devices = append(n.devices,
			notification{attended{user: user}, "device_paired", n.now(), device})
	}
}

// of returns what is known of a session.
func (n *notifier) of(user string, id sessionstore.ID) *attention {
	key := attended{user, id}
	if n.sessions[key] == nil {
		n.sessions[key] = &attention{}
	}
	return n.sessions[key]
}

// look notes that the user did something in the session. An open question goes on waiting.
func (a *attention) look(at time.Time) {
	if at.After(a.seen) {
		a.seen = at
	}
	if a.questions == 0 && !a.at.After(at) {
		a.event = ""
	}
}

// ask notes that the session asks a question, or no longer.
func (a *attention) ask(open bool, now time.Time) {
	if open {
		a.questions++
	} else {
		a.questions--
	}
	switch {
	case open && a.questions == 1:
		a.event, a.at = "question", now
	case a.questions == 0 && a.event == "question":
		a.event = ""
	}
}

// turn notes that a turn begins or has ended. A cancelled turn is no news: the user stopped it.
func (a *attention) turn(e acp.TurnEvent, now time.Time) {
	if e.Running {
		a.turns++
		a.look(now)
		return
	}
	a.turns--
	switch {
	case e.Err != nil:
		a.event, a.at = "turn_failed", now
	case e.StopReason != sdk.StopReasonCancelled:
		a.event, a.at = "turn_ended", now
	}
}

// due takes up to most notifications, which then count as sent. It forgets sessions that need
// nobody.
func (n *notifier) due(most int) (list []notification) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	list = slices.Clone(n.devices[:min(most, len(n.devices))])
	n.devices = n.devices[len(list):]
	for key, a := range n.sessions {
		switch {
		case now.Sub(a.seen) < unattended:
		case a.event != "" && len(list) < most:
			list = append(list, notification{attended: key, event: a.event, at: a.at})
			a.event, a.seen = "", now
		case a.event == "" && a.questions == 0 && a.turns == 0:
			delete(n.sessions, key)
		}
	}
	return list
}

// run notifies users until ctx ends, and waits for the commands.
func (n *notifier) run(ctx context.Context) {
	if n.command == nil {
		return
	}
	var commands sync.WaitGroup
	defer commands.Wait()
	slots := make(chan struct{}, maxNotifying)
	for range pause.Every(ctx, time.Second) {
		for _, one := range n.due(maxNotifying - len(slots)) {
			slots <- struct{}{}
			commands.Go(func() {
				defer func() { <-slots }()
				if err := n.send(ctx, one); err != nil {
					n.log.Warn("cannot notify a user", "user", one.user, "error", err)
				}
			})
		}
	}
}

// send runs the command for a notification, unless the session is gone.
func (n *notifier) send(ctx context.Context, one notification) error {
	ctx, cancel := context.WithTimeoutCause(ctx, notifyTimeout,
		errors.New("the command took longer than "+notifyTimeout.String()))
	defer cancel()
	message, err := n.describe(ctx, one)
	if _, deleted := errors.AsType[*sessionstore.NotFoundError](err); deleted {
		return nil
	}
	if err == nil {
		_, _, err = process.Exchange(ctx, *n.command, message, 0)
	}
	if exit, ok := errors.AsType[*process.ExitError](err); ok && ctx.Err() == nil {
		return errors.New(exit.State + "; run it in a terminal to see why") // it may print secrets
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// describe returns a notification as the command gets it. Its values are single lines without
// invisible characters, because commands put them into headers.
func (n *notifier) describe(ctx context.Context, one notification) ([]byte, error) {
	const most = 200
	message := map[string]any{"event": one.event, "user": one.user,
		"time": one.at.UTC().Format(time.RFC3339)}
	if one.device.ID != "" {
		message["device"], message["role"] = one.device.ID, one.device.Role
		message["title"] = text.Line(one.device.Label, most)
		return json.Marshal(message)
	}
	s, err := n.store.For(one.user).Get(ctx, one.session)
	if err != nil {
		return nil, err
	}
	folders := []string{}
	for _, dir := range s.Keys.Roots.All() {
		folders = append(folders, text.Line(filepath.Base(dir.String()), most))
	}
	message["session"], message["folders"] = one.session, folders
	message["title"] = text.Line(s.Title, most)
	return json.Marshal(message)
}
