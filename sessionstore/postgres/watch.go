package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// listenPause is the time between two attempts to listen.
const listenPause = time.Second

// watches are the sessions that are watched in this process. Once there is one, a goroutine listens
// on its own connection, until end.
type watches struct {
	mu        sync.Mutex
	names     map[chan struct{}]string // that the database announces
	start     sync.Once
	life      context.Context
	stop      context.CancelFunc
	listening sync.WaitGroup
}

// Watch implements [core.Database].
func (d *database) Watch(
	owner string, id sessionstore.ID,
) (changed <-chan struct{}, stop func()) {
	w := &d.watches
	c := make(chan struct{}, 1)
	c <- struct{}{} // something may have happened before
	w.start.Do(func() { w.listening.Go(func() { d.keepListening(w.life) }) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[c] = announced(owner, id)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.names, c)
	}
}

// announced returns the name of a session in announcements, see schema.sql.
func announced(owner string, id sessionstore.ID) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + string(id)))
	return hex.EncodeToString(sum[:])
}

// end stops listening.
func (w *watches) end() {
	w.stop()
	w.start.Do(func() {}) // nobody starts any more
	w.listening.Wait()
}

// tell tells those who watch the session with this name, or everybody if it is "".
func (w *watches) tell(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, watched := range w.names {
		if name != "" && name != watched {
			continue
		}
		select {
		case c <- struct{}{}:
		default: // it has not looked since the last one
		}
	}
}

// keepListening passes on what the database announces until ctx ends. While it is not connected
// nothing is announced, and a lost session is noticed at its next write.
func (d *database) keepListening(ctx context.Context) {
	for ctx.Err() == nil {
		_ = d.listen(ctx) // calls that need the database report what is wrong
		_ = pause.For(ctx, listenPause)
	}
}

// listen passes on what the database announces until the connection is lost.
func (d *database) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, d.config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN acp_agent"); err != nil {
		return err
	}
	d.watches.tell("") // what happened before
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		d.watches.tell(n.Payload)
	}
}
