package proxy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/commandline"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Sessions belong to an agent, not to the command line that starts it: another flag, or a shell or
// launcher in front, does not matter. The agent's own description of itself is not used, because
// stores are read before the agent is started.

// Owner returns the agent that sessions of c's agent belong to in a store: p.Identity, the name of
// the known agent that c runs, or that of its program. If that cannot be told from c, it is the
// whole command line.
func Owner(c Command, p Profile) sessionstore.Agent {
	words := commandWords(c)
	if p.Identity != "" {
		words, _ = splitCommand(p.Identity)
	}
	return sessionstore.Agent{Kind: Kind, Profile: identity(KnownProfiles(), words)}
}

// Identify returns p with its Identity, which it takes from the profile of the program that c runs
// if p has none.
func Identify(profiles []Profile, p Profile, c Command) Profile {
	if p.Identity == "" {
		p.Identity = identity(profiles, commandWords(c))
	}
	return p
}

// MatchProfile returns the profile of the agent that c runs, first that of a known agent. It
// compares the names of the programs and of the packages that they come from.
func MatchProfile(profiles []Profile, c Command) (Profile, bool) {
	return matchProfile(profiles, launched(commandWords(c)))
}

func matchProfile(profiles []Profile, names []string) (match Profile, ok bool) {
	known := KnownProfiles()
	for _, p := range profiles {
		program := launched(commandWords(p.StartCommand()))
		if !slices.ContainsFunc(names, func(name string) bool {
			return slices.Contains(p.Packages, name) || slices.Contains(program, name)
		}) {
			continue
		}
		if _, isKnown := FindProfile(known, p.Name); isKnown {
			return p, true
		}
		if !ok {
			match, ok = p, true
		}
	}
	return match, ok
}

// identity returns the name of the agent that a command line runs, as one word of a shell or as a
// whole command line. The name identifies itself.
func identity(profiles []Profile, words []string) string {
	names := launched(words)
	if p, ok := matchProfile(profiles, names); ok {
		if p.Identity != "" {
			return p.Identity
		}
		return p.Name
	}
	if len(names) > 0 {
		return text.ShellWord(names[0])
	}
	return shellLine(words)
}

// commandWords returns the command line of c, without the directory of the program unless different
// agents may have a program of that name.
func commandWords(c Command) []string {
	program := programName(c.Path)
	if isGeneric(scriptName(program)) {
		program = c.Path
	}
	return append([]string{program}, c.Args...)
}

// shellLine returns a command line as it is typed into a shell.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = text.ShellWord(word)
	}
	return strings.Join(quoted, " ")
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

// scriptNames returns the names of a script: the name of the npm package that contains it, and the
// script's own name without its extension, or with its directory if many scripts have that name. It
// returns nil if the names do not identify an agent.
func scriptNames(path string) (names []string) {
	if strings.HasPrefix(path, "@") { // an npm package
		return []string{path}
	}
	dir := filepath.ToSlash(path)
	if _, inside, ok := cutLast(dir, "node_modules/"); ok {
		elements := strings.SplitN(inside, "/", 3)
		if strings.HasPrefix(inside, "@") && len(elements) > 1 {
			elements[0] += "/" + elements[1]
		}
		names = append(names, elements[0])
	}
	generic := ""
	for _, element := range slices.Backward(strings.Split(dir, "/")) {
		name := scriptName(ProgramName(element))
		switch name {
		case "index", "main", "cli", "__main__", "dist", "build", "bundle", "lib", "bin", "src":
			continue // which many have
		case "", ".", "..":
			return names
		}
		if generic == "" && isGeneric(name) {
			generic = "/" + name
			continue
		}
		return append(names, name+generic)
	}
	return names
}

// scriptName returns the name of a script's file without the extension of its language.
func scriptName(file string) string {
	return withoutExtension(file, ".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".pyz", ".rb", ".pl",
		".sh")
}

// isGeneric reports whether a script with this name may belong to any agent.
func isGeneric(name string) bool {
	switch name {
	case "acp", "agent", "app", "launch", "run", "server", "start":
		return true
	}
	return false
}

func cutLast(s, sep string) (before, after string, found bool) {
	if at := strings.LastIndex(s, sep); at >= 0 {
		return s[:at], s[at+len(sep):], true
	}
	return s, "", false
}

// PackageName returns a package without its version: "@scope/name@1", "name==1", "npm:name".
func PackageName(pkg string) string {
	pkg = strings.TrimPrefix(pkg, "npm:")
	if at := strings.IndexAny(pkg[min(1, len(pkg)):], "@=<>[~"); at >= 0 {
		pkg = pkg[:at+1]
	}
	return pkg
}

// launcher says how a program starts another one. With the zero value, the other command line
// follows the program's own options.
type launcher struct {
	before []string // subcommands, one of which must come first
	values []string // options whose value is the next word
	named  []string // options whose value is a package that has the command
	lines  []string // options whose value is a command line of a shell
	after  []string // words that the command follows; other words before them do not matter
	module string   // the option whose value is a module of the language
	skip   int      // words between the options and the command
	// runs returns the names that the first word after the options stands for. If runs is nil, that
	// word is a program.
	runs func(word string) []string
}

// launcherOf returns how a program with these arguments starts others, or false if it is not known
// to.
func launcherOf(program string, args []string) (l launcher, ok bool) {
	packages := func(word string) []string { return []string{PackageName(word)} }
	switch program {
	case "nohup", "setsid", "command", "winpty", "firejail", "unbuffer":
	case "proxychains", "proxychains4":
		l.values = []string{"-f"}
	case "caffeinate":
		l.values = []string{"-t", "-w"}
	case "script":
		l.lines = []string{"-c", "-qc", "-qec", "-qefc", "--command"}
	case "powershell", "pwsh":
		l.lines = []string{"-Command", "-command", "-c"}
		l.values = []string{"-ExecutionPolicy", "-WorkingDirectory"}
	case "asdf":
		l.before = []string{"exec"}
	case "env":
		l.values = []string{"-u", "--unset", "-C", "--chdir"}
		l.lines = []string{"-S", "--split-string"}
	case "nice":
		l.values = []string{"-n", "--adjustment"}
	case "ionice":
		l.values = []string{"-c", "--class", "-n", "--classdata"}
	case "stdbuf":
		l.values = []string{"-i", "--input", "-o", "--output", "-e", "--error"}
	case "timeout":
		l.values, l.skip = []string{"-s", "--signal", "-k", "--kill-after"}, 1
	case "time":
		l.values = []string{"-f", "--format", "-o", "--output"}
	case "exec":
		l.values = []string{"-a"}
	case "sudo", "doas":
		l.values = []string{"-u", "--user", "-g", "--group", "-C", "-D", "--chdir", "-R", "--chroot"}
	case "cmd":
		l.before = []string{"/c", "/C"}
	case "direnv":
		l.before, l.skip = []string{"exec"}, 1
	case "op", "doppler", "infisical":
		l.before, l.after = []string{"run"}, []string{"--"}
	case "aws-vault", "mise":
		l.before, l.after = []string{"exec", "x"}, []string{"--"}
	case "nix":
		if len(args) > 0 && args[0] == "run" {
			l.before, l.runs = args[:1], flakeNames
		} else {
			l.before, l.after = []string{"develop", "shell"}, []string{"-c", "--command"}
		}
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "fish":
		l.lines, l.runs = []string{"-c", "-lc", "-ec", "-ic", "-lic", "-ilc"}, scriptNames
		l.values = []string{"-o", "--rcfile", "--init-file"}
	case "npx", "bunx", "pnpx":
		l.named, l.lines, l.runs = []string{"-p", "--package"}, []string{"-c", "--call"}, packages
	case "npm":
		l.before, l.named, l.runs = []string{"exec", "x"}, []string{"--package"}, packages
		l.lines = []string{"-c", "--call"}
	case "pnpm", "yarn":
		l.before, l.named, l.runs = []string{"dlx", "exec"}, []string{"-p", "--package"}, packages
	case "bun":
		l.before, l.runs = []string{"x"}, packages
	case "uvx":
		l.named, l.runs = []string{"--from"}, packages
		l.values = []string{"-p", "--python", "-w", "--with"}
	case "pipx":
		l.before, l.named, l.runs = []string{"run"}, []string{"--spec"}, packages
	case "node", "nodejs", "tsx":
		l.values = []string{"-r", "--require", "--import", "-C", "--conditions", "--env-file"}
		l.runs = scriptNames
	case "ruby", "perl":
		l.values, l.runs = []string{"-I", "-r", "-C"}, scriptNames
	case "uv", "deno", "php", "java", "dotnet", "go", "cargo", "make", "just", "docker", "podman",
		"kubectl", "ssh", "wsl", "flatpak", "snap", "systemd-run", "xargs":
		l.runs = func(string) []string { return nil } // its name does not say where they find it
	default:
		if !isPython(program) {
			return l, false
		}
		l.values, l.module, l.runs = []string{"-W", "-X"}, "-m", scriptNames
	}
	return l, true
}

// IsLauncher reports whether a program only starts others, like a shell, an interpreter or sudo.
func IsLauncher(program string) bool {
	program = strings.ToLower(ProgramName(program))
	_, ok := launcherOf(program, nil)
	return ok || program == "acp-agent"
}

// isPython reports whether a program is "python3.12" or the like.
func isPython(program string) bool {
	name := strings.TrimRight(strings.TrimSuffix(program, "w"), "0123456789.")
	return name == "python" || name == "pypy"
}

// launched returns the names of the program, script or package that a command line runs, the most
// specific first. It looks through programs that only start another one. It returns nil if it
// cannot tell.
func launched(words []string) []string {
	for len(words) > 0 {
		program := programName(words[0])
		l, ok := launcherOf(program, words[1:])
		if known := knownBehind(program, words[1:]); !ok && known != nil {
			return known
		}
		switch {
		case program == "acp-agent":
			return launchedBehind(words[1:])
		case strings.ContainsRune(program, '$'): // a variable of a shell
			return nil
		case !ok && isGeneric(scriptName(program)):
			if names := scriptNames(words[0]); names != nil {
				return names
			}
			return []string{program}
		case !ok:
			return scriptNames(program)
		}
		names, next := l.launch(words[1:])
		if len(next) == 0 {
			return names
		}
		words = next
	}
	return nil
}

// launchedBehind is launched for the arguments of acp-agent.
func launchedBehind(args []string) []string {
	for i, arg := range args {
		name, given := strings.CutPrefix(arg, "--agent=")
		switch {
		case arg == "--":
			return launched(args[i+1:])
		case arg == "--agent" && i+1 < len(args):
			return args[i+1 : i+2]
		case given:
			return []string{name}
		}
	}
	return nil
}

// knownBehind returns the names of a known agent whose whole command follows "--" in the arguments
// of a program that is no known agent itself. Most programs that only start another one are called
// like that. It returns nil if there is no such agent.
func knownBehind(program string, args []string) []string {
	at := slices.Index(args, "--")
	if at < 0 || program == "acp-agent" {
		return nil
	}
	known, command := KnownProfiles(), args[at+1:]
	if _, isAgent := matchProfile(known, scriptNames(program)); isAgent {
		return nil
	}
	names := launched(command)
	p, ok := matchProfile(known, names)
	if !ok || slices.ContainsFunc(p.Args, func(arg string) bool { return !slices.Contains(command, arg) }) {
		return nil
	}
	return names
}

// flakeNames returns the name of a package in a flake of Nix, "nixpkgs#name".
func flakeNames(installable string) []string {
	_, name, ok := strings.Cut(installable, "#")
	if !ok || name == "" {
		return nil
	}
	return []string{name}
}

// launch returns the names that the launcher runs with these arguments, or the command line of the
// next program.
func (l launcher) launch(args []string) (names, next []string) {
	if l.before != nil {
		if len(args) == 0 || !slices.Contains(l.before, args[0]) {
			return nil, nil
		}
		args = args[1:]
	}
	if l.after != nil {
		at := slices.IndexFunc(args, func(word string) bool { return slices.Contains(l.after, word) })
		if at < 0 {
			return nil, nil
		}
		return nil, args[at+1:]
	}
	takes := slices.Concat(l.values, l.named, l.lines, []string{l.module})
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || isAssignment(args[0])) {
		option, value, attached := strings.Cut(args[0], "=")
		args = args[1:]
		if option == "--" {
			break
		}
		if !attached && slices.Contains(takes, option) && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch {
		case slices.Contains(l.named, option):
			names = append(names, PackageName(value))
		case slices.Contains(l.lines, option):
			next, _ = splitCommand(value)
			return names, next
		case option == l.module:
			return []string{value}, nil
		}
	}
	for len(args) > 0 && isAssignment(args[0]) { // behind "--"
		args = args[1:]
	}
	switch {
	case len(args) <= l.skip:
		return nil, nil
	case l.runs != nil:
		return slices.Concat(l.runs(args[0]), names), nil
	}
	return nil, args[l.skip:]
}

// splitCommand returns the words of the command in a command line of a shell, without assignments,
// redirections and commands that prepare or end it. It returns false if the line does anything
// else.
func splitCommand(line string) (words []string, ok bool) {
	tokens, complete := commandline.Split(line)
	var commands [][]string
	file := false // the next word is the file of a redirection
	tokens = append(tokens, commandline.Token{Kind: commandline.Operator, Text: "\n"})
	for _, t := range tokens {
		switch {
		case t.Kind == commandline.Substituted:
			return nil, false
		case t.Kind != commandline.Operator && file:
			file = false
		case t.Kind != commandline.Operator:
			words = append(words, t.Text)
		case t.Text == "<" || t.Text == ">":
			file = true
		case t.Text == ";" || t.Text == "&&" || t.Text == "\n":
			if isWork(words) {
				commands = append(commands, words)
			}
			words, file = nil, false
		default:
			return nil, false
		}
	}
	if len(commands) != 1 || !complete {
		return nil, false
	}
	words = commands[0]
	for isAssignment(words[0]) {
		words = words[1:]
	}
	return words, true
}

// isWork reports whether a command of a shell is more than preparation for others.
func isWork(words []string) bool {
	at := slices.IndexFunc(words, func(word string) bool { return !isAssignment(word) })
	if at < 0 {
		return false
	}
	switch words[at] {
	case "cd", "export", "unset", "set", "source", ".", "umask", "ulimit", "true", "exit":
		return false
	}
	return true
}

// isAssignment reports whether a word of a command line sets a variable.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
