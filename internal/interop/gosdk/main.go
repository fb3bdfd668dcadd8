// Command gosdk loads a session through the Go SDK's own client, as it comes, and prints what that client was shown:
//
//	gosdk STATE-DIR SESSION CWD PROGRAM
//
// It is a program of its own, so that a test with the race detector does not slow the client down: how fast it
// handles what it reads is what the test is about.
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

// Shown is what the client was shown, as the program prints it.
type Shown struct {
	Updates int    // notifications
	Text    string // the SHA-256 of the agent's words, in hexadecimal
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

// load starts the program and loads the session. The SDK answers a request once it has handled the
// notifications before its response.
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

// client counts and hashes. The SDK calls it for one notification at a time.
type client struct {
	sdk.Client // nil: nothing else is asked of it
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
