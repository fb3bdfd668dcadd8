package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed icon.svg
var icon []byte

// registryEntry is an agent.json of the ACP registry.
type registryEntry struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Description  string   `json:"description"`
	Repository   string   `json:"repository"`
	Authors      []string `json:"authors"`
	License      string   `json:"license"`
	LicenseURL   string   `json:"license_url"` // of its text
	Distribution struct {
		Binary map[string]registryBinary `json:"binary"`
		NPX    struct {
			Package string `json:"package"`
		} `json:"npx"`
	} `json:"distribution"`
}

// registryBinary says where the program for a platform is.
type registryBinary struct {
	Archive string `json:"archive"`
	SHA256  string `json:"sha256"`
	Cmd     string `json:"cmd"` // in the archive
}

// registryPlatform returns the registry's name for a platform.
func (t target) registryPlatform() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[t.arch]
	return t.os + "-" + arch
}

// writeRegistryEntry writes the folder that the registry expects. The registry accepts only
// versions of three numbers, so the entry of a development version leaves out the rest.
func (r *release) writeRegistryEntry() error {
	number, _, _ := strings.Cut(r.version.Number, "-")
	e := registryEntry{
		ID: "acp-agent", Name: "acp-agent", Version: number, Description: description,
		Repository: repository, Authors: []string{"The acp-agent authors"}, License: licence,
		LicenseURL: fmt.Sprintf("%s/blob/v%s/LICENSE", repository, r.version.Number),
	}
	e.Distribution.NPX.Package = "acp-agent@" + number
	e.Distribution.Binary = make(map[string]registryBinary)
	for _, p := range r.programs {
		d, err := r.download(p.target)
		if err != nil {
			return err
		}
		e.Distribution.Binary[p.registryPlatform()] = registryBinary{
			Archive: d.url, SHA256: d.sha256, Cmd: "./" + p.executable(),
		}
	}
	entry, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	if err := r.write("registry/acp-agent/agent.json", append(entry, '\n')); err != nil {
		return err
	}
	return r.write("registry/acp-agent/icon.svg", icon)
}
