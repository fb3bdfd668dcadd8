package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// licenceFile matches the names of files that a distribution has to contain.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright)([.-].*)?$`)

// modules returns the modules that are linked into any of the programs, by path.
func (r *release) modules() (map[string]*debug.Module, error) {
	modules := make(map[string]*debug.Module)
	for _, p := range r.programs {
		info, err := buildinfo.ReadFile(p.path)
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path] = m
		}
	}
	return modules, nil
}

// licences returns the licences of Go and of the linked modules. It fails if a module has none.
func (r *release) licences(ctx context.Context) ([]byte, error) {
	modules, err := r.modules()
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	all.WriteString("acp-agent contains the following software, under these licences.\n")
	root, err := r.run(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	err = addLicences(&all, "the Go standard library", strings.TrimSpace(string(root)))
	if err != nil {
		return nil, err
	}
	args := []string{"mod", "download", "-json"}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		args = append(args, path+"@"+modules[path].Version)
	}
	out, err := r.run(ctx, nil, "go", args...)
	if err != nil {
		return nil, err
	}
	for found := json.NewDecoder(bytes.NewReader(out)); found.More(); {
		var m struct{ Path, Version, Dir string }
		if err := found.Decode(&m); err != nil {
			return nil, err
		}
		if err := addLicences(&all, m.Path+"@"+m.Version, m.Dir); err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}

// addLicences writes the licence files in dir to all.
func addLicences(all *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := 0
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		found++
		fmt.Fprintf(all, "\n\n=== %s: %s\n\n%s", name, entry.Name(), content)
	}
	if found == 0 {
		return fmt.Errorf("there are no licence files in %s", name)
	}
	return nil
}

// writeBillOfMaterials writes the modules that the programs contain, in CycloneDX's JSON.
func (r *release) writeBillOfMaterials() error {
	modules, err := r.modules()
	if err != nil {
		return err
	}
	var components []object
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		version := modules[path].Version
		url := fmt.Sprintf("pkg:golang/%s@%s", path, version)
		components = append(components, object{
			"type": "library", "bom-ref": url, "purl": url, "name": path, "version": version,
		})
	}
	return r.write(fmt.Sprintf("acp-agent_%s.cdx.json", r.version.Number), encoded(object{
		"$schema":   "http://cyclonedx.org/schema/bom-1.7.schema.json",
		"bomFormat": "CycloneDX", "specVersion": "1.7", "version": 1,
		"metadata": object{
			"timestamp": r.version.Date.Format(time.RFC3339),
			"component": object{
				"type": "application", "name": "acp-agent", "version": r.version.Number,
				"licenses": []object{{"license": object{"id": licence}}},
			},
		},
		"components": components,
	}))
}
