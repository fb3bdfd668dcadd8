package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/text"
)

// officialRegistry is the address of the ACP registry.
const officialRegistry = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"

const agentsUpdateHelp = `update stores a copy of a registry.json, the list of agents of the ACP
registry, in the state directory. From then on --agent accepts their ids too. The official one is

  ` + officialRegistry + `

The copy says how an agent's program is called and with which arguments it is started, so use only
one that you trust. Nothing else is downloaded, and nothing is installed or started: --agent ID
starts a program that is in PATH, and otherwise says how to install it. An agent that acp-agent
knows, by this or another name, or that you have configured stays as it is.

An entry that does not follow the rules of the registry is left out. If the new list cannot be used
the copy stays as it was. To remove it, delete registry.json in the state directory.`

// newAgentsUpdate returns the command that stores a copy of a registry.
func newAgentsUpdate(s streams, set *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "update FILE|URL",
		Short: "Store a list of agents, such as that of the ACP registry",
		Long:  agentsUpdateHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "" {
				return nil
			}
			return usagef("agents update needs the FILE or URL of a registry.json, and downloads "+
				"nothing that you do not name. That of the ACP registry is %s", officialRegistry)
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{officialRegistry},
			cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			return updateRegistry(cmd.Context(), s, set, args[0])
		},
	}
	set.accept(cmd, "state-dir")
	return cmd
}

// updateRegistry stores a copy of the registry in a file or at a URL.
func updateRegistry(ctx context.Context, s streams, set *settings, source string) error {
	read, shown := readRegistryFile, source
	if strings.Index(source, "://") > 1 { // and not C://
		read, shown = downloadRegistry, secret.HideURL(source)
	} else if absolute, err := filepath.Abs(source); err == nil {
		shown = absolute
	}
	raw, err := read(ctx, source)
	if err != nil {
		return err
	}
	r, leftOut, err := parseRegistry(raw)
	if err == nil && len(r.Agents) == 0 {
		err = errors.New("it has no agents that can be used")
	}
	const told = 10
	for i, problem := range leftOut {
		if i == told {
			fmt.Fprintf(s.err, "acp-agent: and %d more\n", len(leftOut)-told)
			break
		}
		fmt.Fprintln(s.err, "acp-agent: left out", text.Line(problem.Error(), 300))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	r.CopiedFrom, r.CopiedAt = shown, time.Now().UTC().Truncate(time.Second)
	if err := set.storeRegistry(r); err != nil {
		return fmt.Errorf("cannot store the list of agents: %w", err)
	}
	_, err = fmt.Fprintf(s.out, "stored %s; acp-agent agents lists them\n",
		text.Count(len(r.Agents), "agent", "agents"))
	return err
}

func readRegistryFile(_ context.Context, path string) ([]byte, error) {
	raw, err := readBounded(path, maxRegistry)
	if err != nil {
		return nil, fileError(err)
	}
	return raw, nil
}

// downloadRegistry returns the content at a URL. It uses only encrypted connections, except to this
// machine.
func downloadRegistry(ctx context.Context, address string) ([]byte, error) {
	const wait = time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("it took more than %v", wait))
	defer cancel()
	u, err := url.Parse(address)
	if err == nil {
		err = checkDownload(u)
	}
	if err != nil {
		return nil, usagef("%s: %v", secret.HideURL(address), unwrapURL(err))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{CheckRedirect: func(next *http.Request, before []*http.Request) error {
		if len(before) > 5 {
			return errors.New("it redirects too often")
		}
		if next.URL.Scheme != "https" && before[0].URL.Scheme == "https" {
			return errors.New("it redirects to an address without https")
		}
		return checkDownload(next.URL)
	}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return nil, downloadError(ctx, address, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, downloadError(ctx, address, errors.New("the server answered "+response.Status))
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxRegistry+1))
	if err == nil && len(raw) > maxRegistry {
		err = fmt.Errorf("it has more than %s", text.Size(maxRegistry))
	}
	if err != nil {
		return nil, downloadError(ctx, address, err)
	}
	return raw, nil
}

// checkDownload checks an address before a request is sent to it.
func checkDownload(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return errors.New("it must begin with https://")
	case u.Scheme == "http" && !secret.IsLoopback(u.Hostname()):
		return errors.New("what is downloaded without encryption can be changed on its way: use " +
			"https, or download it yourself and name the file")
	}
	return nil
}

// downloadError explains a failed download.
func downloadError(ctx context.Context, address string, err error) error {
	err = unwrapURL(err)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	hint := ""
	if _, ok := errors.AsType[net.Error](err); ok {
		hint = "; without a connection, name a file that you have downloaded elsewhere"
	}
	return fmt.Errorf("cannot download %s: %w%s", secret.HideURL(address), err, hint)
}

// unwrapURL returns the cause of an error that quotes the address, which may contain secrets.
func unwrapURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
