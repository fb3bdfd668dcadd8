package main

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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
	if err := r.write("registry/acp-agent/agent.json", entry); err != nil {
		return err
	}
	return r.write("registry/acp-agent/icon.svg", icon)
}
