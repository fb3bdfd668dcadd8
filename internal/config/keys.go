package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

// keyTimeout is how long a command may take to print a key. Password managers ask the user.
const keyTimeout = time.Minute

// key returns the function that gives a model its key, or nil if it needs none. The function gets
// the key that the server has rejected, or "". Its errors must not contain a key. dir is the folder
// of the configuration file. A keyCommand does not get the withheld variables.
func (m Model) key(dir string, withheld []string) func(context.Context, string) (string, error) {
	switch {
	case m.KeyCommand != nil:
		c := keyCommand{command: command(m.KeyCommand, dir, withheld), free: make(chan struct{}, 1)}
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

// command returns a program with arguments that the configuration file in dir names.
func command(words []string, dir string, withheld []string) process.Command {
	return process.Command{Path: words[0], Args: words[1:], Dir: dir,
		Base: process.EnvironmentWithout(withheld)}
}

// NotifyCommand returns the command of notify, or nil. It does not get the withheld
// variables.
func (c Config) NotifyCommand(withheld []string) *process.Command {
	if c.Notify == nil {
		return nil
	}
	return new(command(c.Notify, filepath.Dir(c.Path), withheld))
}

// checkCommand checks the value of a key that names a program with its arguments, if there is one.
func checkCommand(key string, words []string, example string) error {
	if words != nil && (len(words) == 0 || words[0] == "") {
		return fmt.Errorf("%s needs a program and its arguments, such as %s", key, example)
	}
	return nil
}

// resolveCommand makes the path of such a program absolute.
func resolveCommand(file string, words []string) (err error) {
	if words != nil && IsPath(words[0]) {
		words[0], err = ResolvePath(file, words[0])
	}
	return err
}

// DescribeKey says where the key comes from.
func (m Model) DescribeKey() string {
	switch {
	case m.KeyCommand != nil:
		return "from a command"
	case m.KeyEnv == "":
		return "none"
	case os.Getenv(m.KeyEnv) == "":
		return "from " + m.KeyEnv + ", which is not set"
	}
	return "from " + m.KeyEnv
}

// keyCommand runs a command that prints a key, and remembers the key.
type keyCommand struct {
	command process.Command
	free    chan struct{} // holds an element while the command runs or last is used
	last    string
}

// key returns the key. It runs the command if the key is not known or was rejected.
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

// headerVariables returns the names of the environment variables in the values of headers.
func (m Model) headerVariables() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		names = append(names, variablesIn(m.Headers[name])...)
	}
	return names
}

func variablesIn(value string) (names []string) {
	os.Expand(value, func(variable string) string {
		names = append(names, variable)
		return ""
	})
	return names
}

// checkHeaders checks the headers of requests. Its errors have no values, which may be secret.
func (m Model) checkHeaders() error {
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		value := m.Headers[name]
		switch {
		case !headerName().MatchString(name):
			return fmt.Errorf("headers: %q is not the name of a header", name)
		case slices.Contains([]string{"Host", "Content-Length", "Content-Type", "Connection",
			"Transfer-Encoding"}, http.CanonicalHeaderKey(name)):
			return fmt.Errorf("headers: %s is set by the program", name)
		case !isHeaderValue(value):
			return fmt.Errorf("headers: the value of %s has line breaks or control characters",
				name)
		case variablesIn(value) == nil &&
			(secret.IsCredential(name) || http.CanonicalHeaderKey(name) == "Authorization"):
			return fmt.Errorf("headers: the value of %s does not belong in this file: give "+
				"$NAME, the name of an environment variable that has it", name)
		}
	}
	for _, name := range m.headerVariables() {
		if !process.IsVariable(name) {
			return errors.New("headers: $ must precede the name of an environment variable, " +
				"such as $AZURE_API_KEY")
		}
	}
	return nil
}

var headerName = text.Pattern("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func isHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// headers returns a function that returns the headers of requests with variables of the environment
// filled in, or nil if there are no headers.
func (m Model) headers() func() (map[string]string, error) {
	if len(m.Headers) == 0 {
		return nil
	}
	return func() (map[string]string, error) {
		headers := make(map[string]string, len(m.Headers))
		for name, value := range m.Headers {
			var err error
			headers[name] = os.Expand(value, func(variable string) string {
				set := strings.TrimSpace(os.Getenv(variable))
				if set == "" {
					err = fmt.Errorf("the environment variable %s is not set", variable)
				} else if !isHeaderValue(set) {
					err = fmt.Errorf("the environment variable %s has line breaks or control "+
						"characters", variable)
				}
				return set
			})
			if err != nil {
				return nil, err
			}
		}
		return headers, nil
	}
}
