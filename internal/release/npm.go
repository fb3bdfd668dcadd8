package main

import (
	_ "embed"
	"fmt"
	"maps"
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
	all := object{}
	for _, p := range r.programs {
		content, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		os, cpu := p.npmPlatform()
		all[p.npmName()] = r.version.Number
		// Yarn must unpack the package: a program in a zip file cannot be started.
		err = r.writePackage(p.npmName(), file{"bin/" + p.executable(), content, executable},
			object{"os": []string{os}, "cpu": []string{cpu}, "preferUnplugged": true})
		if err != nil {
			return err
		}
	}
	return r.writePackage("acp-agent", file{"launcher.js", launcher, executable},
		object{"bin": object{"acp-agent": "launcher.js"}, "engines": object{"node": ">=18"},
			"optionalDependencies": all})
}

// writePackage writes a package with the given file, as npm pack would. manifest has the members of
// its package.json that not all packages have.
func (r *release) writePackage(name string, f file, manifest object) error {
	maps.Copy(manifest, object{
		"name": name, "version": r.version.Number, "description": description, "license": licence,
		// npm compares it with the provenance of the package.
		"repository": object{"type": "git", "url": "git+" + repository + ".git"},
	})
	files := append([]file{{"package.json", encoded(manifest), plain}, f}, r.files...)
	for i := range files {
		files[i].name = "package/" + files[i].name
	}
	archive, err := tarball(files, r.version.Date)
	if err != nil {
		return err
	}
	name = strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")
	return r.write(fmt.Sprintf("%s-%s.tgz", name, r.version.Number), archive)
}
