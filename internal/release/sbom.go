package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeBillOfMaterials writes the modules that the programs contain, in CycloneDX's JSON.
func (r *release) writeBillOfMaterials() error {
	modules, err := r.modules()
	if err != nil {
		return err
	}
	components := make([]cyclonedx.Component, 0, len(modules))
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		url := fmt.Sprintf("pkg:golang/%s@%s", path, m.Version)
		components = append(components, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, BOMRef: url, PackageURL: url,
			Name: path, Version: m.Version,
		})
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.version.Date.Format("2006-01-02T15:04:05Z"),
		Component: &cyclonedx.Component{
			Type: cyclonedx.ComponentTypeApplication, Name: "acp-agent", Version: r.version.Number,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: licence}}},
		},
	}
	bom.Components = &components
	var b bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON)
	if err := encoder.SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return r.write(fmt.Sprintf("acp-agent_%s.cdx.json", r.version.Number), b.Bytes())
}
