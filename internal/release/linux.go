package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// nfpm writes packages for Linux distributions.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0"

// writeSystemPackages writes a .deb and an .rpm for each program for Linux, if they are wanted.
func (r *release) writeSystemPackages(ctx context.Context, work string) error {
	for _, p := range r.programs {
		if !r.packages || p.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			config, err := r.systemPackage(p, format, filepath.Join(work, format))
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(r.archiveName(p.target), ".tar.gz") + "." + format
			out, err := filepath.Abs(filepath.Join(r.out, name))
			if err != nil {
				return err
			}
			date := "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.version.Date.Unix(), 10)
			_, err = r.run(ctx, []string{date}, "go", "run", nfpm, "package",
				"--config", config, "--packager", format, "--target", out)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// systemPackage writes the files of a package below dir, and its configuration in JSON, which is
// YAML too. It returns the path of the configuration.
func (r *release) systemPackage(p program, format, dir string) (string, error) {
	contents := []object{{"src": p.path, "dst": "/usr/bin/acp-agent"}}
	for _, f := range r.files {
		to := systemPath(f.name, format)
		if to == "" {
			continue
		}
		from := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(from, f.content, 0o644); err != nil {
			return "", err
		}
		contents = append(contents, object{"src": from, "dst": to})
	}
	config := encoded(object{
		"name": "acp-agent", "arch": p.arch, "version": r.version.Number, "section": "devel",
		"maintainer":  "The acp-agent authors <" + repository + "/issues>",
		"description": description, "homepage": repository, "license": licence,
		"mtime": r.version.Date.Format("2006-01-02T15:04:05Z"), "contents": contents,
	})
	path := filepath.Join(dir, "nfpm.yaml")
	return path, os.WriteFile(path, config, 0o644)
}

// systemPath returns where a file of an archive is installed, "" if nowhere.
func systemPath(name, format string) string {
	switch dir, base := filepath.Split(name); {
	case dir == "man/":
		return "/usr/share/man/man1/" + base
	case base == "acp-agent.bash":
		return "/usr/share/bash-completion/completions/acp-agent"
	case base == "_acp-agent":
		functions := map[string]string{"deb": "vendor-completions", "rpm": "site-functions"}[format]
		return "/usr/share/zsh/" + functions + "/_acp-agent"
	case base == "acp-agent.fish":
		return "/usr/share/fish/vendor_completions.d/acp-agent.fish"
	case dir == "":
		return "/usr/share/doc/acp-agent/" + base
	}
	return ""
}
