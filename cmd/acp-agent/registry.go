package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// A registry holds the agents in a registry.json of the ACP registry.
type registry struct {
	// CopiedFrom is the file or URL that our copy comes from, without secrets.
	CopiedFrom string          `json:"copiedFrom"`
	CopiedAt   time.Time       `json:"copiedAt"`
	Agents     []registryAgent `json:"agents"`
}

// A registryAgent is an entry of a registry. Its strings have no hidden characters.
type registryAgent struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Version      string `json:"version"`
	Website      string `json:"website,omitempty"`
	Repository   string `json:"repository,omitempty"`
	Distribution struct {
		Binary map[string]registryProgram `json:"binary,omitempty"` // by platform
		NPX    *registryProgram           `json:"npx,omitempty"`
		UVX    *registryProgram           `json:"uvx,omitempty"`
	} `json:"distribution"`
}

// A registryProgram says how a program is installed and started.
type registryProgram struct {
	Archive string            `json:"archive,omitempty"` // of a binary
	Package string            `json:"package,omitempty"` // of npm or PyPI, perhaps with a version
	Cmd     string            `json:"cmd,omitempty"`     // in the archive or package
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// maxRegistry is the maximum size of a registry in bytes. The ACP registry has about 100,000.
const maxRegistry = 16 << 20

// parseRegistry reads a registry.json. It leaves out invalid entries and returns their errors. It
// ignores unknown members.
func parseRegistry(raw []byte) (r registry, leftOut []error, err error) {
	var file struct {
		CopiedFrom string           `json:"copiedFrom"`
		CopiedAt   time.Time        `json:"copiedAt"`
		Agents     []jsontext.Value `json:"agents"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return r, nil, fmt.Errorf("it is not a registry.json: %w", err)
	}
	r = registry{CopiedFrom: file.CopiedFrom, CopiedAt: file.CopiedAt}
	seen := make(map[string]bool)
	for i, entry := range file.Agents {
		var a registryAgent
		err := json.Unmarshal(entry, &a)
		if err == nil {
			err = a.check()
		}
		name := fmt.Sprintf("entry %d", i+1)
		if registryPatterns().id.MatchString(a.ID) {
			name = a.ID
		}
		switch {
		case err != nil:
			leftOut = append(leftOut, fmt.Errorf("%s: %w", name, err))
		case seen[a.ID]:
			leftOut = append(leftOut, fmt.Errorf("%s: an earlier entry has the same id", name))
		case a.ID != "acp-agent": // which does not run behind itself
			seen[a.ID] = true
			r.Agents = append(r.Agents, a)
		}
	}
	return r, leftOut, nil
}

// registryPatterns has the patterns that the strings of a registry must match, and the environment
// variables that it must not set. A string that matches has no special meaning to a shell and does
// not begin with a dash.
var registryPatterns = sync.OnceValue(func() (p struct {
	id, version, program, npm, pypi, reserved *regexp.Regexp
}) {
	const name = `[A-Za-z0-9_][A-Za-z0-9_.-]*`
	p.id = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
	p.version = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.+-]*$`)
	p.program = regexp.MustCompile(`^` + name + `$`)
	p.npm = regexp.MustCompile(`^(@` + name + `/)?` + name + `(@[A-Za-z0-9.+-]+)?$`)
	p.pypi = regexp.MustCompile(`^` + name + `(\[[A-Za-z0-9_.,-]+\])?((==|@)[A-Za-z0-9.+!-]+)?$`)
	p.reserved = regexp.MustCompile(`(?i)^(PATH|PATHEXT|COMSPEC|HOME|IFS|ENV|BASH_ENV|` +
		`(LD|DYLD|NODE|NPM|PIP|UV|ACP_AGENT)_.*|PYTHON.*)$`)
	return p
})

// check checks what decoding does not.
func (a registryAgent) check() error {
	p := registryPatterns()
	d := a.Distribution
	switch {
	case !p.id.MatchString(a.ID):
		return errors.New("its id must have only small letters, digits and dashes")
	case a.Name == "" || len(a.Name) > 100 || !isOneLine(a.Name):
		return errors.New("its name is missing, too long or not one line")
	case len(a.Version) > 100 || !p.version.MatchString(a.Version):
		return errors.New("its version must have three numbers")
	case !isShownURL(a.Website) || !isShownURL(a.Repository):
		return errors.New("its website or repository is not an address")
	case len(d.Binary) == 0 && d.NPX == nil && d.UVX == nil:
		return errors.New("it has no distribution that is known here")
	}
	for platform, program := range d.Binary {
		if err := program.check(nil); err != nil {
			return fmt.Errorf("binary.%s: %w", text.Name(platform), err)
		}
	}
	if err := d.NPX.check(p.npm); err != nil {
		return fmt.Errorf("npx: %w", err)
	}
	if err := d.UVX.check(p.pypi); err != nil {
		return fmt.Errorf("uvx: %w", err)
	}
	return nil
}

// check checks how a program is started. pkg matches the names of packages, nil for a binary.
func (r *registryProgram) check(pkg *regexp.Regexp) error {
	if r == nil {
		return nil
	}
	switch {
	case pkg != nil && (len(r.Package) > 300 || !pkg.MatchString(r.Package)):
		return errors.New("its package is not the name of a package")
	case pkg == nil && (r.Archive == "" || !isShownURL(r.Archive)):
		return errors.New("its archive is not an address")
	case pkg == nil && !r.isInArchive():
		return errors.New("its cmd is not a program in the archive")
	case pkg != nil && r.Cmd != "" && !registryPatterns().program.MatchString(r.Cmd):
		return errors.New("its cmd is not the name of a program")
	case proxy.IsLauncher(r.program()):
		return fmt.Errorf("%s is no agent: it starts other programs", r.program())
	case len(r.Args) > 100 || len(r.Env) > 100:
		return errors.New("it has too many arguments or environment variables")
	}
	for _, arg := range r.Args {
		if len(arg) > 4096 || !isOneLine(arg) {
			return errors.New("an argument is too long or not one line")
		}
	}
	for name, value := range r.Env {
		switch {
		case len(value) > 4096 || !variableName().MatchString(name) || !isOneLine(value):
			return errors.New("an environment variable has no valid name, or is not one line")
		case registryPatterns().reserved.MatchString(name):
			return fmt.Errorf("it sets %s, which decides what other programs run", name)
		}
	}
	return nil
}

// isInArchive reports whether the cmd of a binary is a path in its archive, on every system.
func (r *registryProgram) isInArchive() bool {
	cmd := strings.ReplaceAll(r.Cmd, `\`, "/")
	return !strings.Contains(cmd, ":") && filepath.IsLocal(filepath.FromSlash(cmd)) &&
		registryPatterns().program.MatchString(path.Base(cmd))
}

// program returns the name of the program, without the extension that Windows adds. For an npm
// package that is not installed, it is a guess.
func (r *registryProgram) program() string {
	if r.Cmd == "" {
		_, name := path.Split(proxy.PackageName(r.Package))
		return name
	}
	return proxy.ProgramName(path.Base(strings.ReplaceAll(r.Cmd, `\`, "/")))
}

// isOneLine reports whether all of s can be seen on one line.
func isOneLine(s string) bool {
	return text.IsVisible(s) && !strings.ContainsAny(s, "\t\n")
}

// isShownURL reports whether s is a web address to show to a person, or absent.
func isShownURL(s string) bool {
	u, err := url.Parse(s)
	return s == "" || err == nil && len(s) <= 2048 && isOneLine(s) && !strings.Contains(s, " ") &&
		(u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}

// registryPath returns where the copy of the registry is.
func (set *settings) registryPath() (string, error) {
	dir, err := set.stateDirectory()
	return filepath.Join(dir, "registry.json"), err
}

// registry reads the copy of the registry. Without one it returns the zero value.
func (set *settings) registry() (registry, error) {
	path, err := set.registryPath()
	if err != nil {
		return registry{}, err
	}
	raw, err := readBounded(path, maxRegistry)
	if errors.Is(err, fs.ErrNotExist) {
		return registry{}, nil
	}
	if err == nil {
		var r registry
		if r, _, err = parseRegistry(raw); err == nil {
			return r, nil
		}
	}
	return registry{}, fmt.Errorf("the copy of the registry in %s cannot be used: %w; acp-agent "+
		"agents update replaces it", path, fileError(err))
}

// storeRegistry replaces the copy of the registry.
func (set *settings) storeRegistry(r registry) error {
	path, err := set.registryPath()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(r, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return privatefile.WriteFile(path, raw)
}

// agents returns the profiles of all agents that --agent accepts: first those that are known or
// configured, then those that only the registry has, and an error if the registry cannot be read.
func (set *settings) agents() ([]proxy.Profile, error) {
	profiles := set.config.profiles()
	r, err := set.registry()
	if err != nil {
		return profiles, err
	}
	return append(profiles, r.profiles(profiles)...), nil
}

// profiles returns the profiles of the agents that are not in own, sorted by name. It keeps what is
// known about an agent that has another name here.
func (r registry) profiles(own []proxy.Profile) []proxy.Profile {
	var profiles []proxy.Profile
	known, taken := make(map[string]proxy.Profile), make(map[string]bool)
	builtIn := proxy.KnownProfiles()
	for _, p := range own {
		taken[p.Name] = true
		if _, isKnown := proxy.FindProfile(builtIn, p.Name); isKnown {
			for _, name := range append(p.Packages, proxy.ProgramName(p.Command)) {
				known[name] = p
			}
		}
	}
	folders := npmFolders()
	for _, a := range r.Agents {
		if taken[a.ID] {
			continue
		}
		p := a.profile(folders)
		for _, name := range append(p.Packages, p.Command, p.Name) {
			if same, ok := known[name]; ok {
				p = same
				p.Identity, p.Name = cmp.Or(same.Identity, same.Name), a.ID
				break
			}
		}
		profiles = append(profiles, p)
	}
	slices.SortFunc(profiles, func(p, q proxy.Profile) int { return cmp.Compare(p.Name, q.Name) })
	return profiles
}

// profile returns how the agent is started by its program in PATH, and how to install that. folders
// are those of npmFolders.
func (a registryAgent) profile(folders []string) proxy.Profile {
	p := proxy.Profile{Name: a.ID, Title: a.Name}
	var ways []registryProgram
	var install []string
	if npx := a.Distribution.NPX; npx != nil {
		way := *npx
		way.Cmd = cmp.Or(way.Cmd, npmProgram(folders, proxy.PackageName(way.Package)))
		ways, install = append(ways, way), append(install, "npm install -g "+way.Package)
	}
	if uvx := a.Distribution.UVX; uvx != nil {
		ways = append(ways, *uvx)
		install = append(install, "uv tool install "+text.ShellWord(uvx.Package))
	}
	platform := registryPlatform()
	if binary, ok := a.Distribution.Binary[platform]; ok {
		ways = append(ways, binary)
		install = append(install, fmt.Sprintf("download %s and put %s into a folder of PATH",
			binary.Archive, binary.program()))
	}
	if ways == nil {
		for _, other := range slices.Sorted(maps.Keys(a.Distribution.Binary)) {
			ways = append(ways, a.Distribution.Binary[other])
		}
		install = []string{fmt.Sprintf("there is no program for %s; see %s", platform,
			cmp.Or(a.Website, a.Repository, "its website"))}
	}
	way := ways[0]
	for _, w := range ways {
		if w.Package != "" {
			p.Packages = append(p.Packages, proxy.PackageName(w.Package))
		}
	}
	if len(ways) > 1 {
		isFound := func(w registryProgram) bool {
			_, err := exec.LookPath(w.program())
			return err == nil
		}
		if at := slices.IndexFunc(ways, isFound); at >= 0 {
			way = ways[at]
		}
	}
	p.Command, p.Args, p.Install = way.program(), way.Args, strings.Join(install, ", or ")
	p.Identity = p.Command // as without a registry
	for _, name := range slices.Sorted(maps.Keys(way.Env)) {
		p.Env = append(p.Env, name+"="+way.Env[name])
	}
	return p
}

// registryPlatform returns the registry's name for this platform.
func registryPlatform() string {
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
			if filepath.IsAbs(dir) && isDir(modules) && !slices.Contains(found, modules) {
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
		raw, err := readBounded(manifest, maxManifest)
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
			if registryPatterns().program.MatchString(name) && !proxy.IsLauncher(name) {
				return name
			}
		}
		return ""
	}
	return ""
}
