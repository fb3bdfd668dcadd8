package runner

import (
	"context"
	"errors"
	"io"

	"github.com/acp-agent/acp-agent/acp/client"
)

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
