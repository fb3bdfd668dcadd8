package acp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

const directoriesMember = "additionalDirectories"

// Folder is a folder that the user, rather than the client, wants sessions to have.
type Folder struct {
	// Path is its absolute path. It is checked like the client's.
	Path string
	// Setting says where the user named it, for messages: "--dir", "workspaces[0] in ~/.config/acp-agent/config.json".
	Setting string
}

// keptSetting is the setting of the folders that Options.KeepFolders restores.
const keptSetting = "the session's stored folders (--keep-dirs)"

// addFolders gives a request that leaves additionalDirectories out the folders that the user declared for its cwd, or those of
// the session that it opens. stored is that session, nil for new and fork. A list of the client stays as it is, even if it is
// empty.
func (a *agent) addFolders(ctx context.Context, p *sessionParams, stored *sessionstore.Session) error {
	if p.listed {
		return nil
	}
	var folders []Folder
	if a.options.Folders != nil {
		err := a.onDisk(ctx, func() error {
			folders = a.options.Folders(p.roots.Cwd())
			return nil
		}, nil)
		if err != nil {
			return err
		}
	}
	if stored != nil && a.options.KeepFolders {
		folders = keptFolders(stored.Keys.Roots.Additional(), folders)
	}
	if len(folders) == 0 {
		return nil
	}
	return p.setFolders(folders)
}

// keptFolders returns the stored folders, with the settings of those that are declared.
func keptFolders(stored workspace.Dirs, declared []Folder) []Folder {
	settings := settingsOf(declared)
	kept := make([]Folder, 0, stored.Len())
	for _, dir := range stored.All() {
		setting, isDeclared := settings[dir]
		if !isDeclared {
			setting = keptSetting
		}
		kept = append(kept, Folder{Path: dir.String(), Setting: setting})
	}
	return kept
}

// settingsOf returns the setting of each folder, the first of those that name it.
func settingsOf(folders []Folder) map[workspace.Dir]string {
	settings := make(map[workspace.Dir]string, len(folders))
	for _, f := range folders {
		dir, err := workspace.ParseDir(f.Path)
		if err != nil {
			continue // opening the session fails
		}
		if _, named := settings[dir]; !named {
			settings[dir] = f.Setting
		}
	}
	return settings
}

// setFolders makes folders the additional roots of a request, as if the client had sent them.
func (p *sessionParams) setFolders(folders []Folder) error {
	paths := make([]string, len(folders))
	for i, f := range folders {
		paths[i] = f.Path
	}
	p.folders = folders
	roots, err := workspace.NewRoots(p.roots.Cwd().String(), paths)
	if err != nil {
		return strictjson.Refuse(p.rootViolations(err)...)
	}
	p.roots = roots
	p.rest = put(p.rest, directoriesMember, backend.Encode(roots.Additional()))
	return nil
}

// rootViolations returns the violations in an error about the roots of the request. Those of declared folders name the settings
// that declare them.
func (p *sessionParams) rootViolations(err error) []strictjson.Violation {
	wrong := rootViolations(err)
	for i, v := range wrong {
		switch {
		case len(p.folders) == 0 || v.Field != directoriesMember:
		case v.Index == nil:
			wrong[i].Field = strings.Join(p.settings(), ", ")
		default:
			wrong[i].Field, wrong[i].Index = p.folders[*v.Index].Setting, nil
		}
	}
	return wrong
}

// settings returns the settings that declare folders, each once.
func (p *sessionParams) settings() []string {
	var settings []string
	for _, f := range p.folders {
		if !slices.Contains(settings, f.Setting) {
			settings = append(settings, f.Setting)
		}
	}
	return settings
}

// droppedFolders returns a message to the user about folders that the session had when it was last opened and has no longer,
// although the client did not ask for that. It is "" if there are none.
func (act *activation) droppedFolders(p sessionParams, stored sessionstore.Keys) string {
	if p.listed {
		return ""
	}
	var dropped []string
	for i, dir := range stored.Roots.All() {
		if i > 0 && !slices.ContainsFunc(act.workspace.Opened(), func(r workspace.Root) bool { return r.Dir == dir || r.Real == stored.Real[i] }) {
			dropped = append(dropped, text.Code(text.Printable(dir.String())))
		}
	}
	if len(dropped) == 0 {
		return ""
	}
	return fmt.Sprintf("This session no longer has %s: your editor opened it without naming folders. "+
		"Start acp-agent with --keep-dirs to keep the folders of sessions.\n\n", strings.Join(dropped, ", "))
}
