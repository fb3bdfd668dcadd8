package main

import (
	_ "embed"
	"strings"
	"text/template"
)

// brewTemplate is the formula. Homebrew says which checksum belongs to which platform, so there is
// a block for each.
//
//go:embed formula.rb
var brewTemplate string

// writeFormula writes the formula for a tap, with the archives for macOS and Linux.
func (r *release) writeFormula() error {
	formula, err := template.New("formula").Parse(brewTemplate)
	if err != nil {
		return err
	}
	var platforms []object
	for _, p := range r.programs {
		if p.os == "windows" {
			continue
		}
		d, err := r.download(p.target)
		if err != nil {
			return err
		}
		platforms = append(platforms, object{
			"OS":  map[string]string{"darwin": "macos", "linux": "linux"}[p.os],
			"CPU": map[string]string{"amd64": "intel", "arm64": "arm"}[p.arch],
			"URL": d.url, "SHA256": d.sha256,
		})
	}
	var b strings.Builder
	err = formula.Execute(&b, object{
		"Repository": repository, "Version": r.version.Number, "Licence": licence,
		"Platforms": platforms,
	})
	if err != nil {
		return err
	}
	return r.write("acp-agent.rb", []byte(b.String()))
}
