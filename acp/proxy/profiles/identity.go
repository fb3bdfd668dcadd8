package profiles

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Sessions belong to an agent. A known agent is recognised by the name of its program or package,
// with any arguments, also behind npx, uvx or env without options. Behind other programs, such as a
// shell or docker, an agent may have another account or run on another machine, and two programs
// may have one name. So the sessions of any other command belong to its whole command line, unless
// all its arguments are switches. The agent's own description of itself is not used, because stores
// are read before the agent is started.

// Identify returns p with its Identity. If p has none, it is that of the known agent that c runs,
// p's name, or what is left of c's command line without npx and its like.
func Identify(list []Profile, p Profile, c Command) Profile {
	words := launched(commandWords(c))
	known, _ := knownProfile(list, words)
	p.Identity = cmp.Or(p.Identity, known.Identity, known.Name, p.Name, ownIdentity(words))
	return p
}

// Doubt says that an agent, which answered initialize with the given response, calls itself by the
// name of a known one and p, the profile of its command line, does not give it the sessions of that
// one. It returns "" if there is no doubt.
func Doubt(initialize json.RawMessage, p Profile) string {
	var own struct{ AgentInfo struct{ Name string } }
	if json.Unmarshal(initialize, &own) != nil || !strings.Contains(p.Identity, " ") {
		return ""
	}
	name := strings.ToLower(own.AgentInfo.Name)
	for _, k := range Known() {
		names := append([]string{k.Name, k.Start.Command, strings.ToLower(k.Title)},
			k.Start.Packages...)
		for _, pkg := range k.Start.Packages {
			names = append(names, path.Base(pkg))
		}
		if identity := cmp.Or(k.Identity, k.Name); slices.Contains(names, name) && name != "" &&
			p.Identity != identity {
			return fmt.Sprintf("calls itself %s, but its sessions are kept apart from those of "+
				"agent %s, because its command may run it with another account or elsewhere; if "+
				"it is the same one, give it an entry in the section agents of the configuration "+
				"file with \"identity\": %q", text.Printable(own.AgentInfo.Name), k.Title, identity)
		}
	}
	return ""
}

// Match returns the profile of the agent that c runs: a known agent, or the one whose
// packages or command line c begins with.
func Match(list []Profile, c Command) (match Profile, ok bool) {
	words := launched(commandWords(c))
	if match, ok = knownProfile(list, words); ok {
		return match, true
	}
	longest := 0
	for _, p := range list {
		start := launched(commandWords(p.StartCommand()))
		if slices.Contains(p.Start.Packages, words[0]) {
			start = words[:1]
		}
		if len(start) > longest && len(start) <= len(words) &&
			slices.Equal(start, words[:len(start)]) {
			match, ok, longest = p, true, len(start)
		}
	}
	return match, ok
}

// knownProfile returns the profile of the known agent that words begin with.
func knownProfile(list []Profile, words []string) (Profile, bool) {
	name := programName(words[0])
	for _, known := range Known() {
		if name == known.Start.Command || slices.Contains(known.Start.Packages, name) {
			return Find(list, known.Name)
		}
	}
	return Profile{}, false
}

// ownIdentity returns the identity of an agent that is not known. A command whose arguments are all
// switches, or "acp", starts no other one, so its first word says which agent it is.
func ownIdentity(words []string) string {
	if !slices.ContainsFunc(words[1:], func(w string) bool { return !isSwitch(w) }) {
		words = words[:1]
	}
	return text.ShellLine(words...)
}

// isSwitch reports whether a word is "acp" or an option without a value.
func isSwitch(word string) bool {
	name, long := strings.CutPrefix(word, "--")
	short := strings.HasPrefix(word, "-") && len(word) == 2
	return word == "acp" || (long || short) && strings.Trim(name, "-") != "" &&
		!strings.ContainsFunc(name, func(r rune) bool { return r != '-' && !unicode.IsLetter(r) })
}

// commandWords returns the command line of c, without the directory of the program unless different
// agents may have a program of that name.
func commandWords(c Command) []string {
	program := programName(c.Path)
	switch withoutExtension(program, ".js", ".mjs", ".cjs", ".ts", ".py", ".sh") {
	case "acp", "agent", "app", "cli", "index", "launch", "main", "run", "server", "start":
		program = c.Path
	}
	return append([]string{program}, c.Args...)
}

// ProgramName returns the last element of a program's path, without the extension that Windows
// adds.
func ProgramName(path string) string {
	return withoutExtension(filepath.Base(path), ".exe", ".cmd", ".bat")
}

// programName is ProgramName, but keeps the scope of an npm package.
func programName(path string) string {
	if strings.HasPrefix(path, "@") && strings.Count(path, "/") == 1 {
		return path
	}
	return ProgramName(path)
}

// withoutExtension removes an extension, unless nothing would be left.
func withoutExtension(name string, extensions ...string) string {
	for _, extension := range extensions {
		if cut := len(name) - len(extension); cut > 0 && strings.EqualFold(name[cut:], extension) {
			return name[:cut]
		}
	}
	return name
}

// PackageName returns a package without its version: "@scope/name@1", "name==1", "npm:name".
func PackageName(pkg string) string {
	pkg = strings.TrimPrefix(pkg, "npm:")
	if at := strings.IndexAny(pkg[min(1, len(pkg)):], "@=<>[~"); at >= 0 {
		pkg = pkg[:at+1]
	}
	return pkg
}

// launched returns the command line behind npx, uvx and env without options: the name of a program
// or package, and its arguments. It returns words themselves otherwise.
func launched(words []string) []string {
	if len(words) < 2 {
		return words
	}
	args := words[1:]
	switch programName(words[0]) {
	case "npx", "bunx", "pnpx", "uvx":
		if args[0] == "-y" || args[0] == "--yes" { // as it is written in most editors' settings
			args = args[1:]
		}
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			return append([]string{PackageName(args[0])}, args[1:]...)
		}
	case "node":
		if pkg := packageOfPath(args[0]); pkg != "" {
			return append([]string{pkg}, args[1:]...)
		}
	case "env":
		if !strings.HasPrefix(args[0], "-") && !strings.Contains(args[0], "=") {
			return launched(commandWords(Command{Path: args[0], Args: args[1:]}))
		}
	}
	return words
}

// packageOfPath returns the npm package that a script's path is in, "" if none.
func packageOfPath(script string) string {
	script = filepath.ToSlash(script)
	at := strings.LastIndex(script, "node_modules/")
	if at < 0 {
		return ""
	}
	elements := strings.SplitN(script[at+len("node_modules/"):], "/", 3)
	if strings.HasPrefix(elements[0], ".") { // .bin has programs of all packages
		return ""
	}
	if strings.HasPrefix(elements[0], "@") && len(elements) > 1 {
		return elements[0] + "/" + elements[1]
	}
	return elements[0]
}
