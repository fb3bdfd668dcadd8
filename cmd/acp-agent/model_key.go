package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/process"
)

// keyTimeout is how long a command may take to print a key. Password managers ask the user.
const keyTimeout = time.Minute

// key returns the function that gives a model its key, or nil if it needs none. It gets the key
// that the server has rejected, "" before that, and its errors must not contain a key. dir is the
// folder of the configuration file. A keyCommand does not get the variables withheld.
func (m modelConfig) key(
	dir string, withheld []string,
) func(context.Context, string) (string, error) {
	switch {
	case m.KeyCommand != nil:
		c := keyCommand{command: process.Command{Path: m.KeyCommand[0], Args: m.KeyCommand[1:],
			Dir: dir, Base: process.EnvironmentWithout(withheld)}, free: make(chan struct{}, 1)}
		return c.key
	case m.KeyEnv != "":
		return func(context.Context, string) (string, error) {
			key := strings.TrimSpace(os.Getenv(m.KeyEnv))
			if key == "" {
				return "", fmt.Errorf(
					"the environment variable %s is not set; editors started from a desktop do "+
						"not have the variables of your shell", m.KeyEnv)
			}
			return checkKey(key, "the environment variable "+m.KeyEnv)
		}
	}
	return nil
}

// keyCommand runs a command that prints a key, and remembers the key.
type keyCommand struct {
	command process.Command
	free    chan struct{} // holds an element while the command runs or last is used
	last    string
}

// key returns the key. It runs the command if it does not know the key, or if that was rejected.
func (c *keyCommand) key(ctx context.Context, rejected string) (string, error) {
	select {
	case c.free <- struct{}{}:
		defer func() { <-c.free }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if c.last != "" && c.last != rejected {
		return c.last, nil
	}
	running, cancel := context.WithTimeoutCause(ctx, keyTimeout,
		fmt.Errorf("it took longer than %v", keyTimeout))
	defer cancel()
	out, err := process.Output(running, c.command)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		// What it wrote may be secret.
		err = errors.New(exit.State + "; run it in a terminal to see why")
	}
	if err != nil {
		return "", fmt.Errorf("the keyCommand failed: %w", err)
	}
	key, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if key, err = checkKey(strings.TrimSpace(key),
		"the first line that the keyCommand printed"); err == nil {
		c.last = key
	}
	return key, err
}

// checkKey checks that a key can be sent. from says where it comes from.
func checkKey(key, from string) (string, error) {
	if key == "" {
		return "", fmt.Errorf("%s is empty instead of a key", from)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s is not a key: it has spaces or special characters", from)
	}
	return key, nil
}
