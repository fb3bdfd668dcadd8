package main

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing/fstest"
)

const (
	description = "Multi-root sessions for coding agents: an ACP agent that runs alone, " +
		"with a model, or in front of another agent"
	repository = "https://github.com/acp-agent/acp-agent"
	licence    = "Apache-2.0" // as SPDX calls it
)

//go:embed launcher.js
var launcher []byte

// writeNPM writes a package for each program, and the package acp-agent, which depends on all of
// them: npm installs the one for its platform.
func (r *release) writeNPM() error {
	all := object{}
	for _, p := range r.programs {
		content, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("@acp-agent/%s-%s", p.nodeOS, p.nodeCPU)
		all[name] = r.version.Number
		// Yarn must unpack the package: a program in a zip file cannot be started.
		err = r.writePackage(name, "bin/"+p.executable(), content,
			object{"os": []string{p.nodeOS}, "cpu": []string{p.nodeCPU}, "preferUnplugged": true})
		if err != nil {
			return err
		}
	}
	return r.writePackage("acp-agent", "launcher.js", launcher,
		object{"bin": object{"acp-agent": "launcher.js"}, "engines": object{"node": ">=18"},
			"optionalDependencies": all})
}

// writePackage writes a package with the given program, as npm pack would. manifest has the members
// of its package.json that not all packages have.
func (r *release) writePackage(name, programPath string, program []byte, manifest object) error {
	maps.Copy(manifest, object{
		"name": name, "version": r.version.Number, "description": description, "license": licence,
		// npm compares it with the provenance of the package.
		"repository": object{"type": "git", "url": "git+" + repository + ".git"},
	})
	at := "package/" + programPath
	files := fstest.MapFS{
		"package":              r.file(nil, fs.ModeDir|executable),
		path.Dir(at):           r.file(nil, fs.ModeDir|executable),
		at:                     r.file(program, executable),
		"package/package.json": r.file(encoded(manifest), plain),
	}
	for name, f := range r.files {
		files["package/"+name] = f
	}
	archive, err := tarball(files)
	if err != nil {
		return err
	}
	name = strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")
	return r.write(fmt.Sprintf("%s-%s.tgz", name, r.version.Number), archive)
}

//go:embed icon.svg
var icon []byte

// writeRegistryEntry writes the folder that the registry expects, with an agent.json. The registry
// accepts only versions of three numbers, so the entry of a development version leaves out the
// rest.
func (r *release) writeRegistryEntry() error {
	number, _, _ := strings.Cut(r.version.Number, "-")
	binaries := object{}
	for _, p := range r.programs {
		name := r.archiveName(p.target)
		archive, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		binaries[p.registry] = object{
			"archive": fmt.Sprintf("%s/releases/download/v%s/%s",
				repository, r.version.Number, name),
			"sha256": fmt.Sprintf("%x", sha256.Sum256(archive)),
			"cmd":    "./" + p.executable(), // in the archive
		}
	}
	entry := encoded(object{
		"id": "acp-agent", "name": "acp-agent", "version": number, "description": description,
		"repository": repository, "authors": []string{"The acp-agent authors"}, "license": licence,
		"license_url":  fmt.Sprintf("%s/blob/v%s/LICENSE", repository, r.version.Number),
		"distribution": object{"binary": binaries, "npx": object{"package": "acp-agent@" + number}},
	})
	return cmp.Or(r.write("registry/acp-agent/agent.json", entry),
		r.write("registry/acp-agent/icon.svg", icon))
}
