package discovery

import (
	"encoding/json"
)

// MarshalJSON encodes the artifact with the members kind, name, description, root (its index), place, path, realPath, size
// and state; and, where there is something to say, reason, shadowedBy, diagnostics (rule and message), hint, applies
// (mode and globs), imports (written, by, realPath, size) and server (transport, command, args, cwd, url, inputs, and of env and
// headers the names). Members may be added; these stay.
func (a Artifact) MarshalJSON() ([]byte, error) {
	w := struct {
		Kind        Kind         `json:"kind"`
		Name        string       `json:"name"`
		Description string       `json:"description"`
		Root        int          `json:"root"`
		Place       string       `json:"place"`
		Path        string       `json:"path"`
		RealPath    string       `json:"realPath,omitempty"`
		Size        int64        `json:"size"`
		State       State        `json:"state"`
		Reason      string       `json:"reason,omitempty"`
		ShadowedBy  string       `json:"shadowedBy,omitempty"`
		Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
		Hint        string       `json:"hint,omitempty"`
		Applies     *applies     `json:"applies,omitempty"`
		Imports     []imported   `json:"imports,omitempty"`
		Server      *Server      `json:"server,omitempty"`
	}{
		Kind: a.Kind, Name: a.Name, Description: a.Description, Root: a.Root.Index, Place: a.Place, Path: a.Path,
		Size: a.Size, State: a.State, Reason: a.Reason, ShadowedBy: a.ShadowedBy, Diagnostics: a.Diagnostics,
		Hint: a.Hint, Server: a.Server,
	}
	if a.Ref.Rel() != "" {
		w.RealPath = a.Ref.Real()
	}
	if a.Applies.Mode != "" {
		w.Applies = &applies{a.Applies.Mode, a.Applies.Globs}
	}
	for _, in := range a.Imports {
		w.Imports = append(w.Imports, imported{in.Written, in.Path, in.Ref.Real(), in.Size})
	}
	return json.Marshal(w)
}

type applies struct {
	Mode  Mode     `json:"mode"`
	Globs []string `json:"globs,omitempty"`
}

type imported struct {
	Written  string `json:"written"`
	By       string `json:"by"`
	RealPath string `json:"realPath"`
	Size     int64  `json:"size"`
}

// MarshalJSON encodes the catalog with the members roots (index, path and realPath of each), artifacts (an array, in the
// order of [Catalog.Artifacts]) and cuts (root, place, at, bound and limit of each). Both arrays are there if empty.
func (c *Catalog) MarshalJSON() ([]byte, error) {
	type root struct {
		Index    int    `json:"index"`
		Path     string `json:"path"`
		RealPath string `json:"realPath"`
	}
	type cut struct {
		Root  int    `json:"root"`
		Place string `json:"place"`
		At    string `json:"at"`
		Bound string `json:"bound"`
		Limit int64  `json:"limit"`
	}
	w := struct {
		Roots     []root     `json:"roots"`
		Artifacts []Artifact `json:"artifacts"`
		Cuts      []cut      `json:"cuts"`
	}{Artifacts: append([]Artifact{}, c.artifacts...), Cuts: []cut{}}
	for _, r := range c.Roots() {
		w.Roots = append(w.Roots, root{r.Index, r.Dir.String(), r.Real.String()})
	}
	for _, k := range c.Cuts() {
		w.Cuts = append(w.Cuts, cut{k.Root.Index, k.Place, k.At, k.Bound, k.Limit})
	}
	return json.Marshal(w)
}
