package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// pluginManifest is a plugin.json, or the entry of a plugin in a marketplace.json, which may be the
// plugin's only manifest.
type pluginManifest struct {
	Name, Description string
	Source            json.RawMessage // of an entry
	Skills, Commands  pluginPaths
}

// pluginPaths are paths in a manifest, relative to the plugin's directory: a string or a list of
// strings.
type pluginPaths []string

// UnmarshalJSON implements [json.Unmarshaler]. It leaves out everything else, because the formats
// of manifests grow.
func (p *pluginPaths) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*p = pluginPaths{one}
		return nil
	}
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list)
	for _, item := range list {
		if json.Unmarshal(item, &one) == nil {
			*p = append(*p, one)
		}
	}
	return nil
}

// readPlugins scans the plugins that a manifest or marketplace in the root names. It returns
// artifacts for plugins that are not used.
func (m *matcher) readPlugins(ctx context.Context, a Artifact, content string) []Artifact {
	if m.row.plugin {
		manifest, err := parseManifest([]byte(content))
		if err != nil {
			a.invalid(err.Error())
			return []Artifact{a}
		}
		return m.scanPlugin(ctx, a, m.level, manifest)
	}
	var market struct {
		Metadata struct{ PluginRoot string }
		Plugins  []json.RawMessage
	}
	const mismatch = "it is not a list of plugins: its members metadata or plugins have other types"
	if err := parseMembers([]byte(content), &market, mismatch); err != nil {
		a.invalid(err.Error())
		return []Artifact{a}
	}
	var unused []Artifact
	for i, raw := range market.Plugins {
		if m.stopAtLimit(ctx, m.row) {
			break
		}
		plugin := a.clone()
		entry, err := parseManifest(raw)
		plugin.Name = cmp.Or(entry.Name, fmt.Sprintf("plugin %d", i+1))
		plugin.Description = oneLine(entry.Description, maxDescription)
		if err != nil {
			plugin.invalid(err.Error())
			unused = append(unused, plugin)
			continue
		}
		unused = append(unused, m.scanEntry(ctx, plugin, entry, market.Metadata.PluginRoot)...)
	}
	return unused
}

func parseManifest(content []byte) (pluginManifest, error) {
	var m pluginManifest
	err := parseMembers(content, &m,
		"its members name or description are not texts, or it is not an object")
	return m, err
}

// scanEntry scans the plugin of an entry of a marketplace in the root.
func (m *matcher) scanEntry(
	ctx context.Context, a Artifact, entry pluginManifest, base string,
) []Artifact {
	dir, err := localSource(entry.Source, base)
	if err != nil {
		a.unused(err.Error())
		return []Artifact{a}
	}
	opened, err := m.ws.OpenDir(m.path(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.unused("there is no folder " + dir)
		return []Artifact{a}
	case err != nil:
		a.invalid(dir + ": " + reasonOf(err))
		return []Artifact{a}
	}
	defer opened.Close()
	at := newDirectory(opened, nil, dir)
	if len(entry.Skills) > 0 { // which are all that it has
		return m.scanPlugin(ctx, a, at, entry)
	}
	manifest, err := m.manifestIn(at, entry)
	if err != nil {
		a.invalid(err.Error())
		return []Artifact{a}
	}
	return m.scanPlugin(ctx, a, at, manifest)
}

// localSource returns the path, from the root, of a plugin whose source is a path in the root.
// Otherwise the error says why it is not.
func localSource(source json.RawMessage, base string) (string, error) {
	var at string
	var local struct{ Source, Path string } // of Codex and Cursor
	_ = json.Unmarshal(source, &local)
	isLocal := local.Path != "" && (local.Source == "" || local.Source == "local")
	if isLocal {
		at = local.Path
	}
	if isLocal || json.Unmarshal(source, &at) == nil {
		dir := path.Join(base, at)
		if at == "" || path.IsAbs(at) || path.IsAbs(base) ||
			!filepath.IsLocal(filepath.FromSlash(dir)) || strings.ContainsAny(dir, "\\:\x00") {
			return "", fmt.Errorf("its source %q is not a directory in this folder",
				text.Truncate(at, 200))
		}
		return dir, nil
	}
	var remote struct{ Source, URL, Repo, Package string }
	if json.Unmarshal(source, &remote) != nil || remote.Source == "" {
		return "", errors.New("it has no source")
	}
	where := cmp.Or(remote.Repo, remote.Package, Address(remote.URL).String())
	return "", fmt.Errorf("it is not in this folder: its source is %s",
		text.Truncate(strings.TrimSpace(remote.Source+" "+where), 200))
}

// manifestIn reads the manifest of the plugin in a directory, which has one of the names in the
// table, and adds what the entry of the plugin in a marketplace says. It returns the entry if there
// is no manifest.
func (m *matcher) manifestIn(at *directory, entry pluginManifest) (pluginManifest, error) {
	var names []string
	for _, r := range rowsThat(func(r row) bool { return r.plugin }) {
		names = append(names, r.pattern)
	}
	for _, name := range append(names, "plugin.json") {
		rel := join(at.rel, name)
		file, err := readPath(m.ws, m.path(rel), m.limits.fileSize)
		m.bytes += int(file.size)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return entry, err
		}
		manifest, err := parseManifest([]byte(file.text))
		if err != nil {
			return entry, fmt.Errorf("%s: %w", rel, err)
		}
		manifest.Name = cmp.Or(manifest.Name, entry.Name)
		manifest.Commands = append(manifest.Commands, entry.Commands...)
		return manifest, nil
	}
	return entry, nil
}

// scanPlugin scans the plugin in a directory. It returns artifacts based on a for the paths in its
// manifest that are not used.
func (m *matcher) scanPlugin(
	ctx context.Context, a Artifact, at *directory, manifest pluginManifest,
) []Artifact {
	name := oneLine(cmp.Or(manifest.Name, path.Base(filepath.ToSlash(m.path(at.rel)))), 64)
	var unused []Artifact
	for _, r := range rowsThat(func(r row) bool { return r.inside }) {
		var paths []string // in addition to the pattern
		onlyPaths := false
		switch {
		case r.kind == Skill: // a marketplace entry that lists skills has no other skills
			paths, onlyPaths = manifest.Skills, manifest.Source != nil && len(manifest.Skills) > 0
		case r.kind == Command && path.Ext(r.pattern) == ".md":
			paths, onlyPaths = manifest.Commands, len(manifest.Commands) > 0
		}
		for _, p := range paths {
			rows, err := r.rowsAt(p)
			if err != nil {
				one := a.clone()
				one.Name = name
				one.unused(fmt.Sprintf("its path %q %v", text.Truncate(p, 200), err))
				unused = append(unused, one)
				continue
			}
			for _, below := range rows {
				m.scanRow(ctx, below, at, name)
			}
		}
		if !onlyPaths {
			m.scanRow(ctx, r, at, name)
		}
	}
	return unused
}

// rowsAt returns rows for the files at a path that a manifest names instead of r's pattern: the
// folder of a skill, a folder of skills, a command, or a folder of commands.
func (r row) rowsAt(written string) ([]row, error) {
	at := path.Clean(written)
	if written == "" || !filepath.IsLocal(filepath.FromSlash(at)) {
		return nil, errors.New("is not in the plugin's folder")
	}
	if isGlob(at) {
		return nil, errors.New("is a pattern")
	}
	var patterns []string
	switch {
	case r.kind == Skill:
		patterns = []string{path.Join(at, "SKILL.md"), path.Join(at, "*", "SKILL.md")}
	case path.Ext(at) == ".md":
		patterns = []string{at}
	case at == ".":
		patterns = []string{"*.md"}
	default:
		patterns = []string{path.Join(at, "**", "*.md")}
	}
	var list []row
	for _, pattern := range patterns {
		one, err := r.at(pattern)
		if err != nil {
			return nil, fmt.Errorf("cannot be used: %w", err)
		}
		list = append(list, one)
	}
	return list, nil
}
