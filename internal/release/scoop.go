package main

// writeScoop writes the manifest of an app of a bucket, if there is an archive for Windows.
func (r *release) writeScoop() error {
	architectures, program := object{}, ""
	for _, p := range r.programs {
		if p.os != "windows" {
			continue
		}
		d, err := r.download(p.target)
		if err != nil {
			return err
		}
		program = p.executable()
		architectures[map[string]string{"amd64": "64bit", "arm64": "arm64"}[p.arch]] =
			object{"url": d.url, "hash": d.sha256}
	}
	if program == "" {
		return nil
	}
	return r.write("acp-agent.json", encoded(object{
		"version": r.version.Number, "description": description, "homepage": repository,
		"license": licence, "architecture": architectures, "bin": program,
	}))
}
