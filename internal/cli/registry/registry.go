// Package registry reads lists of ACP agents in the format of the ACP registry, registry.json, and
// says how their programs are started here.
//
// A registry comes from somebody else, so Read accepts only entries whose strings have no special
// meaning to a shell or to a terminal. Nothing in this package installs or starts a program.
package registry

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// A Registry has the agents in a registry.json of the ACP registry.
type Registry []Agent

// An Agent is an entry of a registry. Its strings have no hidden characters.
type Agent struct {
	ID           string       `json:"id"`
	Name         string       `json:"name"`
	Distribution Distribution `json:"distribution"`
}

// A Distribution says where the programs of an agent come from.
type Distribution struct {
	Binary map[string]*Program `json:"binary"` // by platform
	NPX    *Program            `json:"npx"`
	UVX    *Program            `json:"uvx"`
}

// A Program says how a program is installed and started. Environment variables of an entry are
// ignored: they are for a program that an editor has installed, such as to keep it from updating
// itself.
type Program struct {
	Archive string   `json:"archive"` // of a binary
	Package string   `json:"package"` // of npm or PyPI, perhaps with a version
	Cmd     string   `json:"cmd"`     // in the archive or package
	Args    []string `json:"args"`
}

// maxSize is the maximum size of a registry in bytes. The ACP registry has about 100,000.
const maxSize = 16 << 20

// Read reads the registry.json at path. Without one it returns none. It leaves out invalid entries
// and returns their errors. It ignores unknown members.
func Read(path string) (r Registry, leftOut []error, err error) {
	raw, err := namedfile.ReadBounded(path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	var file struct {
		Agents []jsontext.Value `json:"agents"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf(
			"the list of agents in %s cannot be used: %w; replace or remove it", path,
			namedfile.Explain(err))
	}
	seen := make(map[string]bool)
	for i, entry := range file.Agents {
		var a Agent
		err := json.Unmarshal(entry, &a)
		if err == nil {
			err = a.check()
		}
		name := fmt.Sprintf("entry %d", i+1)
		if idPattern().MatchString(a.ID) {
			name = a.ID
		}
		switch {
		case err != nil:
			leftOut = append(leftOut, fmt.Errorf("%s: %w", name, err))
		case seen[a.ID]:
			leftOut = append(leftOut, fmt.Errorf("%s: an earlier entry has the same id", name))
		case a.ID != "acp-agent": // which does not run behind itself
			seen[a.ID] = true
			r = append(r, a)
		}
	}
	return r, leftOut, nil
}

// word matches the names of programs, and is a part of those of packages.
const word = `[A-Za-z0-9_][A-Za-z0-9_.-]*`

// The patterns that the strings of a registry must match. A string that matches has no special
// meaning to a shell and, except for an argument, does not begin with a dash.
var (
	idPattern       = text.Pattern(`^[a-z][a-z0-9-]{0,63}$`)
	programPattern  = text.Pattern(`^` + word + `$`)
	npmPattern      = text.Pattern(`^(@` + word + `/)?` + word + `(@[A-Za-z0-9.+-]+)?$`)
	pypiPattern     = text.Pattern(`^` + word + `(\[[A-Za-z0-9_.,-]+\])?((==|@)[A-Za-z0-9.+!-]+)?$`)
	argumentPattern = text.Pattern(`^-{0,2}[A-Za-z0-9][A-Za-z0-9_.,=-]*$`)
)

// check checks what decoding does not.
func (a Agent) check() error {
	d := a.Distribution
	switch {
	case !idPattern().MatchString(a.ID):
		return errors.New("its id must have only small letters, digits and dashes")
	case a.Name == "" || len(a.Name) > 100 || !isOneLine(a.Name):
		return errors.New("its name is missing, too long or not one line")
	}
	for platform, program := range d.Binary {
		if err := program.checkBinary(); err != nil {
			return fmt.Errorf("binary.%s: %w", text.Name(platform), err)
		}
	}
	if err := d.NPX.checkPackage(npmPattern()); err != nil {
		return fmt.Errorf("npx: %w", err)
	}
	if err := d.UVX.checkPackage(pypiPattern()); err != nil {
		return fmt.Errorf("uvx: %w", err)
	}
	if d.Binary[platformName()] == nil && d.NPX == nil && d.UVX == nil {
		return fmt.Errorf("it has no program for %s", platformName())
	}
	return nil
}

// checkBinary checks a program in an archive, if there is one.
func (r *Program) checkBinary() error {
	switch {
	case r == nil:
		return nil
	case !isShownURL(r.Archive):
		return errors.New("its archive is not an address")
	case !r.isInArchive():
		return errors.New("its cmd is not a program in the archive")
	}
	return r.checkStart()
}

// checkPackage checks a program in a package whose name has a pattern, if there is one.
func (r *Program) checkPackage(names *regexp.Regexp) error {
	switch {
	case r == nil:
		return nil
	case len(r.Package) > 300 || !names.MatchString(r.Package):
		return errors.New("its package is not the name of a package")
	case r.Cmd != "" && !programPattern().MatchString(r.Cmd):
		return errors.New("its cmd is not the name of a program")
	}
	return r.checkStart()
}

// checkStart checks how the program is started.
func (r *Program) checkStart() error {
	switch {
	case isOther(r.program()):
		return fmt.Errorf("%s is not an agent: it starts other programs", r.program())
	case len(r.Args) > 100:
		return errors.New("it has too many arguments")
	}
	for _, arg := range r.Args {
		if len(arg) > 100 || !argumentPattern().MatchString(arg) {
			return errors.New("an argument is too long, or more than a switch or a word")
		}
	}
	return nil
}

// otherPrograms are programs of systems and languages that start other programs or change files,
// without the digits of their versions. None is an agent. An entry of a registry can name any
// program in PATH, and no such list is complete. So an entry can hardly say anything to its program:
// its arguments are switches and words, without a path, a script or an address.
//
//go:embed programs.txt
var otherPrograms string

// isOther reports whether a program is one of the machine's that starts others, such as a shell, an
// interpreter, sudo or a dynamic linker.
func isOther(program string) bool {
	name, _, _ := strings.Cut(strings.ToLower(program), ".") // "vim.tiny", "python3.12"
	if strings.HasPrefix(name, "ld-") {
		return true
	}
	name = strings.TrimSuffix(strings.TrimRight(name, "0123456789-"), "-static")
	return slices.Contains(strings.Fields(otherPrograms), name)
}

// isInArchive reports whether the cmd of a binary is a path in its archive, on every system.
func (r *Program) isInArchive() bool {
	cmd := strings.ReplaceAll(r.Cmd, `\`, "/")
	return !strings.Contains(cmd, ":") && filepath.IsLocal(filepath.FromSlash(cmd)) &&
		programPattern().MatchString(path.Base(cmd))
}

// program returns the name of the program, without the extension that Windows adds. For an npm
// package that is not installed, it is a guess.
func (r *Program) program() string {
	if r.Cmd == "" {
		_, name := path.Split(profiles.PackageName(r.Package))
		return name
	}
	return profiles.ProgramName(path.Base(strings.ReplaceAll(r.Cmd, `\`, "/")))
}

// isOneLine reports whether all of s can be seen on one line.
func isOneLine(s string) bool {
	return text.IsVisible(s) && !strings.ContainsAny(s, "\t\n")
}

// isShownURL reports whether s is a web address to show to a person.
func isShownURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= 2048 && isOneLine(s) && !strings.Contains(s, " ") &&
		(u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}
