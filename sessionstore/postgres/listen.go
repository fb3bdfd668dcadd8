package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// listenPause is the time between two attempts to listen.
const listenPause = time.Second

// Listen implements [core.Database], on a connection of its own. While that is lost nothing is
// announced, and a lost session is noticed at its next write.
func (d *database) Listen(ctx context.Context, tell func(name string)) {
	for ctx.Err() == nil {
		_ = d.listen(ctx, tell) // calls that need the database report what is wrong
		_ = pause.For(ctx, listenPause)
	}
}

// listen passes on what the database announces until the connection is lost.
func (d *database) listen(ctx context.Context, tell func(name string)) error {
	conn, err := pgx.ConnectConfig(ctx, d.config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN acp_agent"); err != nil {
		return err
	}
	tell("") // what happened before
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		tell(n.Payload)
	}
}
