package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

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
