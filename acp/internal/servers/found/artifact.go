package found

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/workspace"
)

// New returns the server that an active artifact configures, with the variables in its configuration
// replaced. Its working directory is the root, or the artifact's directory relative to the root;
// New fails unless the path leads there.
func New(a discovery.Artifact, w *workspace.Workspace) (Server, error) {
	s := Server{Root: a.Root.Real, File: a.Path, Config: configOf(a)}
	if s.Config.Transport == mcp.Stdio {
		s.EnvFile = a.Server.EnvFile
	}
	folder := a.Root.Dir.String()
	err := s.expand(folder)
	dir := s.Start.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(folder, dir)
	}
	s.Config.Dir, s.Start.Dir = dir, dir
	if err = errors.Join(err, w.HandOverDir(dir)); err == nil {
		err = s.readEnvFile(w, folder)
	}
	if err != nil {
		return Server{}, s.cannotStart(err)
	}
	return s, nil
}

// CheckDir checks that the working directory is still a directory of w.
func (s Server) CheckDir(w *workspace.Workspace) error {
	if err := w.HandOverDir(s.Start.Dir); err != nil {
		return s.cannotStart(err)
	}
	return nil
}

func (s Server) cannotStart(why error) error {
	return fmt.Errorf("cannot start MCP server %s of %s: %w", s.Config.Name, s.File, why)
}

// configOf returns the configuration of a server that was found, as written.
func configOf(a discovery.Artifact) mcpclient.Config {
	server := a.Server
	pairs := func(secrets discovery.Secrets) []mcpclient.Pair {
		list := []mcpclient.Pair{}
		for name, value := range secrets.All() {
			list = append(list, mcpclient.Pair{Name: name, Value: value})
		}
		return list
	}
	return mcpclient.Config{
		Name: a.Name, Transport: mcp.Transport(server.Transport),
		Command: server.Command, Args: server.Args, Dir: server.Cwd,
		Env: pairs(server.Env), URL: string(server.URL), Headers: pairs(server.Headers),
	}
}
