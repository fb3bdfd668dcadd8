//go:build linux

// Command remote is acp-agent over the network, for tests of acp-agent: it takes the same
// arguments, starts "acp-agent serve" with them and connects to it. Other subcommands run as they
// are. The environment variable ACP_AGENT_REMOTE names the program that it starts.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

func main() {
	code, err := run(os.Getenv(program.Remote), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "remote:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(path string, args []string) (code int, err error) {
	at := slices.Index(args, "--state-dir")
	subcommand := []string{"sessions", "run", "mcp", "discover", "doctor", "serve", "connect", "tokens"}
	own := func(arg string) bool { return slices.Contains(subcommand, arg) }
	if at < 0 || slices.ContainsFunc(args[:min(len(args), at+3)], own) {
		return 1, syscall.Exec(path, append([]string{path}, args...), os.Environ())
	}
	token, err := tokenIn(path, args[at+1])
	if err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	server := command(path, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	log, err := server.StderrPipe()
	if err != nil {
		return 1, err
	}
	if err := server.Start(); err != nil {
		return 1, err
	}
	url, rest := address(log)
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		_, _ = io.Copy(os.Stderr, rest)
	}()
	if url == "" {
		<-logged
		_ = server.Wait()
		return server.ProcessState.ExitCode(), nil
	}
	client := command(path, "connect", url)
	client.Env = append(os.Environ(), "ACP_AGENT_TOKEN="+token)
	client.Stdin, client.Stdout, client.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := client.Start(); err != nil {
		return 1, err
	}
	go func() {
		for s := range signals {
			_ = client.Process.Signal(s)
		}
	}()
	_ = client.Wait()
	_ = server.Process.Signal(syscall.SIGTERM)
	<-logged
	_ = server.Wait()
	return max(client.ProcessState.ExitCode(), server.ProcessState.ExitCode()), nil
}

// command returns a command that is killed if this process is.
func command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// tokenIn returns the token of the user of a state directory, which may open every folder.
func tokenIn(path, state string) (string, error) {
	kept := filepath.Join(filepath.Dir(state), "token of "+filepath.Base(state))
	if token, err := os.ReadFile(kept); err == nil {
		return string(token), nil
	}
	out, err := exec.Command(path, "tokens", "add", "ana", "--within", "/", "--state-dir", state).Output()
	if err != nil {
		return "", fmt.Errorf("cannot make a token: %w", err)
	}
	token := strings.TrimSpace(string(out))
	return token, os.WriteFile(kept, []byte(token), 0o600)
}

// address returns the address that the server logs, and the rest of its log.
func address(log io.Reader) (url string, rest io.Reader) {
	serving := regexp.MustCompile(`serving on (wss?://\S+)/acp`)
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		if found := serving.FindStringSubmatch(line); found != nil {
			return found[1], lines
		}
		_, _ = io.WriteString(os.Stderr, line)
		if err != nil {
			return "", lines
		}
	}
}
