package mcprelay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/workspace"
)

// ErrEnded is returned by SessionRoots and SessionContext after the session has ended.
var ErrEnded = errors.New("the session that these tools belong to is not open: open it with " +
	"acp-agent to use them again")

// SessionRoots returns the current roots of the session whose publisher is at address, in order. It
// returns none if the working directory is the only root. It fails if the session has ended.
func SessionRoots(ctx context.Context, address, secret string) ([]workspace.Root, error) {
	return ask[[]workspace.Root](ctx, address, secret, rootsOnce)
}

// SessionContext returns the text for the model of the session whose publisher is at address, which
// our MCP server puts into its instructions, or "".
func SessionContext(ctx context.Context, address, secret string) (string, error) {
	return ask[string](ctx, address, secret, contextOnce)
}

// Rules are the texts of a session's rules about what is asked about and denied in its folders.
type Rules struct {
	Ask  []string `json:"ask"`
	Deny []string `json:"deny"`
	// Folders are the real paths of the session's roots that exist. Those in ReadOnly may only be
	// read.
	Folders  []string `json:"folders"`
	ReadOnly []string `json:"readOnly,omitempty"`
}

// SessionRules returns the rules of the session whose publisher is at address.
func SessionRules(ctx context.Context, address, secret string) (Rules, error) {
	return ask[Rules](ctx, address, secret, rulesOnce)
}

// ask asks a publisher once.
func ask[T any](ctx context.Context, address, secret string, wants byte) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	conn, in, err := dial(ctx, address, secret, wants)
	if err != nil {
		return answer, ErrEnded
	}
	defer conn.Close()
	line, err := in.Append(nil)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return answer, ErrEnded
	}
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	if err != nil {
		return answer, fmt.Errorf("cannot read the folders of the session: %w", err)
	}
	return answer, nil
}

const (
	maxWait = 2 * time.Second // for a publisher to send its first line
	maxList = 16 << 20        // bytes of a line
)

// dial connects to a publisher and sends the kind of the request. Reading and writing fail when ctx
// ends. The caller must close the connection.
func dial(
	ctx context.Context, address, secret string, wants byte,
) (net.Conn, *jsonrpc.Reader, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", address)
	if err != nil {
		return nil, nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, secret+string(wants)); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, jsonrpc.NewReader(conn, maxList), nil
}
