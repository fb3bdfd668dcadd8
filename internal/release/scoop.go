package main

import "encoding/json"

// scoopManifest is an app of a bucket.
type scoopManifest struct {
	Version      string                   `json:"version"`
	Description  string                   `json:"description"`
	Homepage     string                   `json:"homepage"`
	License      string                   `json:"license"`
	Architecture map[string]scoopDownload `json:"architecture"`
	Bin          string                   `json:"bin"`
}

type scoopDownload struct {
	URL  string `json:"url"`
	Hash string `json:"hash"`
}

// writeScoop writes the manifest for Windows, if there is an archive for it.
func (r *release) writeScoop() error {
	m := scoopManifest{
		Version: r.version.Number, Description: description, Homepage: repository, License: licence,
		Architecture: make(map[string]scoopDownload),
	}
	for _, p := range r.programs {
		if p.os != "windows" {
			continue
		}
		d, err := r.download(p.target)
		if err != nil {
			return err
		}
		m.Bin = p.executable()
		m.Architecture[map[string]string{"amd64": "64bit", "arm64": "arm64"}[p.arch]] =
			scoopDownload{URL: d.url, Hash: d.sha256}
	}
	if m.Bin == "" {
		return nil
	}
	manifest, err := json.MarshalIndent(m, "", "    ")
	if err != nil {
		return err
	}
	return r.write("acp-agent.json", append(manifest, '\n'))
}
