package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// WorkspaceFile is a file that joins several folders for an editor or a build tool. Finding it adds
// no roots.
type WorkspaceFile struct {
	// Path is absolute, as the client spells the root.
	Path string `json:"path"`
	// Folders are the folders outside the roots that it lists, in order. They may not exist,
	// because nothing outside the roots is read. A pattern such as "../libs/*" counts as the folder
	// before its first wildcard.
	Folders []workspace.Dir `json:"folders"`
}

// maxWorkspaceFiles is the most workspace files that are read in a folder.
const maxWorkspaceFiles = 16

// WorkspaceFiles reads the workspace files at the top of cwd, and returns those that list folders
// outside the roots, sorted by name. It leaves out files that cannot be read. The error is the
// context's or [workspace.ErrClosed].
func (c *Catalog) WorkspaceFiles(ctx context.Context) (files []WorkspaceFile, err error) {
	cwd := c.ws.Roots().Cwd().String()
	dir, err := c.ws.OpenDir(cwd)
	if errors.Is(err, workspace.ErrClosed) {
		return nil, err
	}
	if err != nil {
		return nil, context.Cause(ctx)
	}
	defer dir.Close()
	entries, _ := dir.Entries(ctx)
	entries = slices.DeleteFunc(entries, func(e workspace.Entry) bool {
		return e.Type.IsDir() || workspaceFormat(e.Name) == nil
	})
	for _, e := range entries[:min(len(entries), maxWorkspaceFiles)] {
		f, err := ReadWorkspaceFile(ctx, c.ws, filepath.Join(cwd, e.Name))
		if err == nil && len(f.Folders) > 0 {
			files = append(files, f)
		}
	}
	return files, context.Cause(ctx)
}

// ReadWorkspaceFile reads the workspace file at path, which is absolute or relative to cwd and must
// be in the roots.
func ReadWorkspaceFile(
	ctx context.Context, ws *workspace.Workspace, path string,
) (WorkspaceFile, error) {
	format := workspaceFormat(filepath.Base(path))
	if format == nil {
		return WorkspaceFile{},
			fmt.Errorf("%s is not a workspace file: use a *.code-workspace, go.work, "+
				"pnpm-workspace.yaml or package.json", path)
	}
	if ctx.Err() != nil {
		return WorkspaceFile{}, context.Cause(ctx)
	}
	file, err := readPath(ws, path, defaultLimits.fileSize)
	if err != nil {
		return WorkspaceFile{}, err
	}
	listed, err := format([]byte(file.text))
	if err != nil {
		return WorkspaceFile{}, fmt.Errorf("%s: %w", path, err)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(ws.Roots().Cwd().String(), path)
	}
	f := WorkspaceFile{Path: path, Folders: []workspace.Dir{}}
	seen := make(map[workspace.Dir]bool)
	for _, name := range listed {
		folder := filepath.FromSlash(name)
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(filepath.Dir(path), folder)
		}
		dir, err := workspace.ParseDir(filepath.Clean(folder))
		if err != nil {
			return WorkspaceFile{}, fmt.Errorf("%s: the folder %q: %w", path, name, err)
		}
		isIn := func(r workspace.Root) bool { return r.Dir.Contains(dir) || r.Real.Contains(dir) }
		if !seen[dir] && !slices.ContainsFunc(ws.Opened(), isIn) {
			seen[dir] = true
			f.Folders = append(f.Folders, dir)
		}
	}
	return f, nil
}

// workspaceFormat returns the function that reads the folders in a workspace file with this name,
// or nil if it is not the name of one. Paths in it start at the file's directory.
func workspaceFormat(name string) func([]byte) ([]string, error) {
	switch name {
	case "go.work":
		return goWorkFolders
	case "pnpm-workspace.yaml":
		return pnpmFolders
	case "package.json":
		return npmFolders
	}
	if path.Ext(name) == ".code-workspace" {
		return editorFolders
	}
	return nil
}

// editorFolders reads a .code-workspace of VS Code. Folders of other computers, which have a URI,
// are left out.
func editorFolders(content []byte) ([]string, error) {
	var file struct{ Folders []struct{ Path string } }
	if err := parseMembers(content, &file,
		"folders is not a list of objects with a path"); err != nil {
		return nil, err
	}
	var folders []string
	for _, f := range file.Folders {
		if f.Path != "" {
			folders = append(folders, f.Path)
		}
	}
	return folders, nil
}

// goWorkFolders reads the use directives of a go.work.
func goWorkFolders(content []byte) ([]string, error) {
	file, err := modfile.ParseWork("go.work", content, nil)
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "go.work:"), "\n")
		return nil, errors.New("line " + text.Truncate(first, 200))
	}
	folders := make([]string, len(file.Use))
	for i, use := range file.Use {
		folders[i] = use.Path
	}
	return folders, nil
}

func pnpmFolders(content []byte) ([]string, error) {
	var file struct{ Packages []string }
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return patternFolders(file.Packages), nil
}

// npmFolders reads the member workspaces of a package.json, which is a list of patterns or has one
// in its member packages.
func npmFolders(content []byte) ([]string, error) {
	var file struct{ Workspaces json.RawMessage }
	if err := parseMembers(content, &file, "it is not an object"); err != nil ||
		len(file.Workspaces) == 0 {
		return nil, err
	}
	var patterns []string
	if json.Unmarshal(file.Workspaces, &patterns) == nil {
		return patternFolders(patterns), nil
	}
	var yarn struct{ Packages []string }
	err := parseMembers(file.Workspaces, &yarn, "workspaces is not a list of patterns")
	return patternFolders(yarn.Packages), err
}

// patternFolders returns the folder of each pattern: what comes before its first wildcard. Patterns
// that exclude folders are left out.
func patternFolders(patterns []string) []string {
	var folders []string
	for _, pattern := range patterns {
		if strings.HasPrefix(pattern, "!") {
			continue
		}
		if wild := strings.IndexAny(pattern, "*?[{("); wild >= 0 {
			pattern = path.Dir(pattern[:wild] + "x")
		}
		if pattern != "" {
			folders = append(folders, pattern)
		}
	}
	return folders
}
