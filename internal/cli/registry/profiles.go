package registry

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// Profiles returns the profiles of the agents that are not in own, sorted by name. If an agent is
// known by another name, its profile has what is known about it.
func (r Registry) Profiles(own []profiles.Profile) []profiles.Profile {
	var list []profiles.Profile
	known, taken := make(map[string]profiles.Profile), make(map[string]bool)
	builtIn := profiles.Known()
	for _, p := range own {
		taken[p.Name] = true
		if _, isKnown := profiles.Find(builtIn, p.Name); isKnown {
			for _, name := range append(p.Start.Packages, profiles.ProgramName(p.Start.Command)) {
				known[name] = p
			}
		}
	}
	folders := npmFolders()
	for _, a := range r {
		if taken[a.ID] {
			continue
		}
		p := a.profile(folders)
		for _, name := range append(p.Start.Packages, p.Start.Command, p.Name) {
			if same, ok := known[name]; ok {
				p = same
				p.Identity, p.Name = cmp.Or(same.Identity, same.Name), a.ID
				break
			}
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(p, q profiles.Profile) int { return cmp.Compare(p.Name, q.Name) })
	return list
}

// profile returns how the agent is started by its program in PATH, and how to install that. folders
// are those of npmFolders.
func (a Agent) profile(folders []string) profiles.Profile {
	p := profiles.Profile{Name: a.ID, Title: a.Name}
	var ways []Program
	var install []string
	add := func(way Program, how string) {
		ways, install = append(ways, way), append(install, how)
		if way.Package != "" {
			p.Start.Packages = append(p.Start.Packages, profiles.PackageName(way.Package))
		}
	}
	if npx := a.Distribution.NPX; npx != nil {
		way := *npx
		way.Cmd = cmp.Or(way.Cmd, npmProgram(folders, profiles.PackageName(way.Package)))
		add(way, "npm install -g "+way.Package)
	}
	if uvx := a.Distribution.UVX; uvx != nil {
		add(*uvx, "uv tool install "+text.ShellWord(uvx.Package))
	}
	if binary := a.Distribution.Binary[platformName()]; binary != nil {
		add(*binary, fmt.Sprintf("download %s and put %s into a folder of PATH", binary.Archive,
			binary.program()))
	}
	way := ways[0]
	if len(ways) > 1 {
		isFound := func(w Program) bool {
			_, err := exec.LookPath(w.program())
			return err == nil
		}
		if at := slices.IndexFunc(ways, isFound); at >= 0 {
			way = ways[at]
		}
	}
	p.Start.Command, p.Start.Args, p.Start.Install = way.program(), way.Args, strings.Join(install, ", or ")
	p.Identity = p.Start.Command // as without a registry
	return p
}

// platformName returns the registry's name for this platform.
func platformName() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return runtime.GOOS + "-" + cmp.Or(arch, runtime.GOARCH)
}

// npmFolders returns the folders with the packages whose programs are in PATH: those of npm, on
// Unix and on Windows, of a project's node_modules/.bin, of Bun and of pnpm.
func npmFolders() []string {
	var found []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, modules := range []string{
			"../lib/node_modules", "node_modules", "../../node_modules",
			"../install/global/node_modules", "global/5/node_modules",
		} {
			modules = filepath.Join(dir, filepath.FromSlash(modules))
			if filepath.IsAbs(dir) && namedfile.IsDir(modules) && !slices.Contains(found, modules) {
				found = append(found, modules)
			}
		}
	}
	return found
}

// npmProgram returns the name of the program that npx runs for a package in one of these folders.
// It returns "" if the package is in none of them, or if the program has the package's name.
func npmProgram(folders []string, pkg string) string {
	const maxManifest = 1 << 20
	_, own := path.Split(pkg)
	for _, folder := range folders {
		manifest := filepath.Join(folder, filepath.FromSlash(pkg), "package.json")
		raw, err := namedfile.ReadBounded(manifest, maxManifest)
		if err != nil {
			continue
		}
		var m struct {
			Bin jsontext.Value `json:"bin"`
		}
		var programs map[string]string
		if json.Unmarshal(raw, &m) != nil || json.Unmarshal(m.Bin, &programs) != nil ||
			programs[own] != "" {
			return ""
		}
		for _, name := range slices.Sorted(maps.Keys(programs)) {
			if programPattern().MatchString(name) && !isOther(name) {
				return name
			}
		}
		return ""
	}
	return ""
}
