// Command gosdk loads a session with the unmodified client of the Go SDK and prints what the client
// received:
//
//	gosdk STATE-DIR SESSION CWD PROGRAM
//
// It is a separate program so that the race detector of a test does not slow down the client, whose
// speed is tested.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"os/exec"

	sdk "github.com/coder/acp-go-sdk"
)

// Shown is the output of the program.
type Shown struct {
	Updates int    // notifications
	Text    string // the SHA-256 of the agent's messages, in hexadecimal
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: gosdk STATE-DIR SESSION CWD PROGRAM")
		os.Exit(2)
	}
	shown, err := load(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(shown)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// load starts the program and loads the session. The SDK returns from a request after it has
// handled the notifications before the response.
func load(ctx context.Context, state, id, cwd, program string) (shown Shown, err error) {
	cmd := exec.CommandContext(ctx, program, "--state-dir", state)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return shown, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return shown, err
	}
	if err := cmd.Start(); err != nil {
		return shown, err
	}
	c := &client{words: sha256.New()}
	conn := sdk.NewClientSideConnection(c, in, out)
	_, err = conn.Initialize(ctx, sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	if err == nil {
		_, err = conn.LoadSession(ctx, sdk.LoadSessionRequest{SessionId: sdk.SessionId(id), Cwd: cwd, McpServers: []sdk.McpServer{}})
	}
	err = errors.Join(err, in.Close())
	<-conn.Done()
	shown = Shown{Updates: c.updates, Text: fmt.Sprintf("%x", c.words.Sum(nil))}
	return shown, errors.Join(err, cmd.Wait())
}

// client counts updates and hashes messages. The SDK calls it for one notification at a time.
type client struct {
	sdk.Client // nil: no other method is called
	updates    int
	words      hash.Hash
}

// SessionUpdate implements sdk.Client.
func (c *client) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	c.updates++
	if chunk := n.Update.AgentMessageChunk; chunk != nil && chunk.Content.Text != nil {
		c.words.Write([]byte(chunk.Content.Text.Text))
	}
	return nil
}
