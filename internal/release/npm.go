package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

const (
	description = "Multi-root sessions for coding agents: an ACP agent that runs alone, " +
		"with a model, or in front of another agent"
	repository = "https://github.com/acp-agent/acp-agent"
	licence    = "Apache-2.0" // as SPDX calls it
)

//go:embed launcher.js
var launcher []byte

// npmManifest is a package.json.
type npmManifest struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	License     string            `json:"license"`
	Repository  npmRepository     `json:"repository"`
	Bin         map[string]string `json:"bin,omitempty"`
	Engines     map[string]string `json:"engines,omitempty"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Optional    map[string]string `json:"optionalDependencies,omitempty"`
	// PreferUnplug tells Yarn to unpack the package: a program in a zip file cannot be started.
	PreferUnplug bool `json:"preferUnplugged,omitempty"`
}

// npmRepository is where the source is. npm compares it with the provenance of the package.
type npmRepository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// manifest returns what all packages have in common.
func (r *release) manifest(name string) npmManifest {
	return npmManifest{
		Name: name, Version: r.version.Number, Description: description, License: licence,
		Repository: npmRepository{"git", "git+" + repository + ".git"},
	}
}

// npmPlatform returns the names that Node.js has for a platform.
func (t target) npmPlatform() (os, cpu string) {
	os, cpu = t.os, t.arch
	if os == "windows" {
		os = "win32"
	}
	if cpu == "amd64" {
		cpu = "x64"
	}
	return os, cpu
}

func (t target) npmName() string {
	os, cpu := t.npmPlatform()
	return fmt.Sprintf("@acp-agent/%s-%s", os, cpu)
}

// writeNPM writes a package for each program, and the package acp-agent, which depends on all of
// them: npm installs the one for its platform.
func (r *release) writeNPM() error {
	main := r.manifest("acp-agent")
	main.Bin = map[string]string{"acp-agent": "launcher.js"}
	main.Engines = map[string]string{"node": ">=18"}
	main.Optional = make(map[string]string)
	for _, p := range r.programs {
		content, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		m := r.manifest(p.npmName())
		os, cpu := p.npmPlatform()
		m.OS, m.CPU, m.PreferUnplug = []string{os}, []string{cpu}, true
		main.Optional[m.Name] = m.Version
		err = r.writePackage(m, file{"bin/" + p.executable(), content, executable})
		if err != nil {
			return err
		}
	}
	return r.writePackage(main, file{"launcher.js", launcher, executable})
}

// writePackage writes a package with the given file, as npm pack would.
func (r *release) writePackage(m npmManifest, f file) error {
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	files := []file{{"package.json", append(manifest, '\n'), plain}, f}
	for _, f := range r.files {
		if !strings.Contains(f.name, "/") { // documents and licences
			files = append(files, f)
		}
	}
	for i := range files {
		files[i].name = "package/" + files[i].name
	}
	archive, err := tarball(files, r.version.Date)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(m.Name, "@"), "/", "-")
	return r.write(fmt.Sprintf("%s-%s.tgz", name, m.Version), archive)
}
