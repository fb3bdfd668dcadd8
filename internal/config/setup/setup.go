// Package setup is the wizard that writes the configuration file: it asks what should answer and
// which folders belong together, shows how the file changes, and prints what to add to an editor.
//
//   - setup.go: the questions, and the file.
//   - answer.go: the agents and models to choose from.
//   - editors.go: what to add to each editor.
package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/config/inventory"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/files/privatefile"
	"github.com/acp-agent/acp-agent/internal/history/conversation"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/workspace"
)

// needsAnswers is the error if nobody can be asked.
const needsAnswers = `setup asks questions on a terminal, and this is not one. Flags can answer them instead:

  acp-agent setup --yes --agent NAME --cwd DIR --dir DIR --editor EDITOR

agents that were found: %s (acp-agent agents lists all)
editors: %s
For models and more: acp-agent setup --help`

// Options are the flags of setup and what it needs of the program.
type Options struct {
	In       io.Reader
	Out, Err io.Writer

	// Path is the configuration file, "" if it is not known where it belongs.
	Path string
	// Agent and Model are flags that name what answers, and Command is the command of an agent.
	// Chosen is set if there is such a flag, which may be empty.
	Agent, Model string
	Chosen       bool
	Command      []string
	Sandbox      string
	// Cwd is a working directory, and Dirs are the folders that belong to it.
	Cwd  string
	Dirs []string
	// Editor is the name of an editor, "" to ask.
	Editor string
	// Allow are rules to add to the permissions. Rules means that flags say which rules hold.
	Allow []string
	Rules bool
	// Yes means that nothing is asked.
	Yes bool
	// Arguments are put into what is printed. KeepDirs adds --keep-dirs for every editor.
	Arguments []string
	KeepDirs  bool

	// Agents returns the agents that are known with the configuration. With an error, it returns
	// those that are known without a registry.
	Agents func() ([]profiles.Profile, error)
	// Workspace has the options for opening folders.
	Workspace workspace.Options
}

// Run asks, writes the configuration file and prints what to add to the editor. If it fails,
// nothing has changed.
func Run(ctx context.Context, options Options) error {
	o := run{Options: options}
	if err := o.readFile(); err != nil {
		return err
	}
	if err := o.findTerminal(); err != nil {
		return err
	}
	o.tellConfigured()
	if err := o.addFolders(ctx); err != nil {
		return err
	}
	chosen, err := o.chooseEditor(ctx)
	if err != nil {
		return err
	}
	agent, err := o.addAnswer(ctx)
	if err != nil {
		return err
	}
	if err := o.addRules(); err != nil {
		return err
	}
	if err := o.write(ctx); err != nil {
		return err
	}
	return o.printSnippet(chosen, agent)
}

// run is one run.
type run struct {
	Options

	user   *terminal.Asker // nil to ask nothing
	dialog io.Writer       // where questions are asked

	// The configuration file may not exist yet.
	path   string
	file   string        // path without links
	perm   fs.FileMode   // of the file
	old    []byte        // its content; can be nil
	config config.Config // that old describes
	new    *config.Text  // what it will have
}

// readFile reads the configuration file, if there is one. It must be valid, and writable.
func (o *run) readFile() (err error) {
	if o.Path == "" {
		return usage.Errorf("cannot determine where the configuration file belongs; use " +
			"--config FILE")
	}
	if o.path, err = filepath.Abs(o.Path); err != nil {
		return err
	}
	o.file, o.perm, o.config = o.path, 0o600, config.Config{Path: o.path}
	if _, err := os.Lstat(o.path); err == nil {
		if err := o.readOld(); err != nil {
			return err
		}
	}
	o.new, err = config.ParseText(o.old)
	return err
}

// readOld reads the file that exists.
func (o *run) readOld() (err error) {
	if o.file, err = filepath.EvalSymlinks(o.path); err != nil {
		return usage.Errorf("configuration: %s is a link to a file that does not exist", o.path)
	}
	if o.old, err = namedfile.Read(o.file); err != nil {
		return usage.Errorf("configuration: %v", namedfile.Explain(err))
	}
	opened, err := os.OpenFile(o.file, os.O_WRONLY, 0)
	if err != nil {
		return usage.Errorf("configuration: %v", namedfile.Explain(err))
	}
	info, err := opened.Stat()
	if err = errors.Join(err, opened.Close()); err != nil {
		return err
	}
	o.perm = info.Mode().Perm()
	if len(bytes.TrimSpace(o.old)) > 0 {
		o.config, err = config.Parse(o.path, bytes.Clone(o.old))
	}
	if err != nil {
		return usage.Errorf("%v\nNothing was changed: correct the file, or move it away", err)
	}
	return nil
}

// findTerminal decides where to ask: on the terminal of standard input, unless --yes is given.
func (o *run) findTerminal() error {
	o.dialog = o.Out
	switch {
	case o.Yes:
		return nil
	case terminal.Is(o.In) && terminal.Is(o.Out):
	case terminal.Is(o.In) && terminal.Is(o.Err):
		o.dialog = o.Err
	default:
		return usage.Errorf(needsAnswers, strings.Join(o.foundAgents(), ", "),
			strings.Join(EditorNames(), ", "))
	}
	o.user = terminal.NewAsker(o.In.(*os.File), o.dialog)
	return nil
}

func (o *run) foundAgents() []string {
	profiles, _ := o.Agents() // without those of the registry if it cannot be read
	var names []string
	for _, p := range profiles {
		if inventory.ReportAgent(p, o.config).Found != "" {
			names = append(names, p.Name)
		}
	}
	if names == nil {
		return []string{"none"}
	}
	return names
}

// tell shows a sentence.
func (o *run) tell(format string, args ...any) {
	_ = terminal.Say(o.dialog, "%s", text.Plain(fmt.Sprintf(format, args...)))
}

// tellConfigured shows what the file has, which Enter keeps.
func (o *run) tellConfigured() {
	c := o.config
	if o.user == nil || c.Agent+c.Model == "" && len(c.Workspaces) == 0 {
		return
	}
	o.tell("Configured in %s (Enter keeps what is there):", text.Printable(o.path))
	for _, w := range c.Workspaces {
		folders := []string{w.Cwd}
		for _, d := range w.Directories {
			folders = append(folders, d.String())
		}
		o.tell("  folders: %s", text.Printable(strings.Join(folders, ", ")))
	}
	if answers := cmp.Or(c.Agent, c.Model); answers != "" {
		o.tell("  answers: %s", text.Printable(answers))
	}
}

// ask asks for a line. It returns an error if ctx or the input ends.
func (o *run) ask(
	ctx context.Context, question string, complete func(string) string,
) (string, error) {
	line, err := o.user.Ask(ctx, question, complete)
	if errors.Is(err, io.EOF) && line == "" {
		return "", errors.New("the input ended; nothing was written")
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// An option is a possible answer to a question. The name is for those who type it.
type option struct{ name, title string }

// choose lets the user choose one of the options by its number or name. An empty line is initial.
// explain, if not nil, says what to do about a line that names none of them, or returns "".
func (o *run) choose(
	ctx context.Context, question string,
	options []option, initial int, explain func(string) string,
) (int, error) {
	fmt.Fprintln(o.dialog)
	o.tell("%s", question)
	for i, option := range options {
		_ = terminal.Item(o.dialog, fmt.Sprintf("%4d  ", i+1), text.Printable(option.title))
	}
	for {
		line, err := o.ask(ctx, fmt.Sprintf("Number or name [%d]:", initial+1), nil)
		if err != nil {
			return 0, err
		}
		found, typed := find(options, line), text.QuotedName(line)
		switch {
		case line == "":
			return initial, nil
		case len(found) == 1:
			return found[0] - 1, nil
		case len(found) == 0:
			said := ""
			if explain != nil {
				said = explain(line)
			}
			if said == "" {
				said = typed + " isn't one of these" + cmp.Or(meant(options, line), ".")
			}
			o.tell("%s Type a number from 1 to %d, or the beginning of a name.", said, len(options))
		default:
			o.tell("%s could be any of %s. Type a number, or more of the name.", typed,
				strings.ReplaceAll(strings.Trim(fmt.Sprint(found), "[]"), " ", ", "))
		}
	}
}

// find returns the numbers of the options that a line may mean: the one with this number, those
// with this name or title, or else those whose name or title begins so. A part of a title in
// parentheses is another name.
func find(options []option, line string) (found []int) {
	if line == "" {
		return nil
	}
	if n, err := strconv.Atoi(line); err == nil {
		if n >= 1 && n <= len(options) {
			found = append(found, n)
		}
		return found
	}
	exact := func(name string) bool { return name == strings.ToLower(line) }
	begins := func(name string) bool { return strings.HasPrefix(name, strings.ToLower(line)) }
	const shortest = 3
	contains := func(name string) bool {
		return len(line) >= shortest && strings.Contains(name, strings.ToLower(line))
	}
	for _, matches := range []func(string) bool{exact, begins, contains} {
		for i, o := range options {
			title := strings.ToLower(o.title)
			_, inner, _ := strings.Cut(strings.TrimSuffix(title, ")"), " (")
			names := []string{strings.ToLower(o.name), title, inner}
			if slices.ContainsFunc(names, matches) {
				found = append(found, i+1)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// meant returns "; did you mean …?" with the option that a line may mean, or "".
func meant(options []option, line string) string {
	names := map[string]string{}
	for _, o := range options {
		names[o.name] = o.name
	}
	return text.Meant(line, names)
}

// addRules adds the rules of flags to the configuration.
func (o *run) addRules() error {
	if _, err := (permission.Permissions{Allow: o.Allow}).Rules(); err != nil {
		return usage.Errorf("--allow: %v", err)
	}
	var known []string
	if p := o.config.Permissions; p != nil {
		known = p.Allow
	}
	for i, rule := range o.Allow {
		if !slices.Contains(known, rule) && !slices.Contains(o.Allow[:i], rule) {
			o.new.Append(rule, "permissions", "allow")
		}
	}
	return nil
}

// addFolders adds the folders that belong together to the configuration.
func (o *run) addFolders(ctx context.Context) error {
	given := append([]string{cmp.Or(o.Cwd, ".")}, o.Dirs...)
	switch {
	case len(o.Dirs) > 0:
	case o.Cwd != "":
		return usage.Errorf("--cwd needs at least one --dir: a folder that belongs to it")
	case o.user == nil:
		return nil
	default:
		var err error
		if given, err = o.askFolders(ctx); err != nil || len(given) < 2 {
			return err
		}
	}
	opened, err := o.open(ctx, given)
	if err != nil {
		return usage.Errorf("%v", usage.WithFlagNames(err, "cwd", "dir"))
	}
	cwd, others := opened[0], opened[1:]
	var added []string // of a new entry
	index, known := -1, map[workspace.Dir]bool{cwd.Real: true}
	for i, w := range o.config.Workspaces {
		if workspace.Real(w.Dir) != cwd.Real {
			continue
		}
		index = i
		for _, configured := range w.Directories {
			if d, err := workspace.ParseDir(w.Dir.Locate(configured.Path)); err == nil {
				known[workspace.Real(d)] = true
			}
		}
		break
	}
	for _, folder := range others {
		switch {
		case known[folder.Real]:
		case index >= 0:
			o.new.Append(folder.Dir.String(), "workspaces", strconv.Itoa(index), "directories")
		default:
			added = append(added, folder.Dir.String())
		}
	}
	if len(added) > 0 {
		o.new.Append(map[string]any{"cwd": cwd.Dir.String(), "directories": added}, "workspaces")
	}
	return nil
}

// askFolders asks for the working directory and the folders that belong to it, until the user gives
// no more.
func (o *run) askFolders(ctx context.Context) (given []string, err error) {
	fmt.Fprintln(o.dialog)
	o.tell("Which folders belong together? Agents then see them all. Tab completes a path. (Zed " +
		"sends the folders of its project itself, and those count instead.)")
	question, start := "Folder that you work in (Enter for none):", "."
	if len(o.config.Workspaces) > 0 {
		question = "One more folder that you work in (Enter for none):"
	}
	for {
		line, err := o.ask(ctx, question, func(typed string) string {
			return terminal.CompleteFolder(start, typed)
		})
		if err != nil {
			return given, err
		}
		if line == "" {
			if len(given) == 1 {
				o.tell("No folder belongs to %s, so nothing is added for it.", given[0])
			}
			return given, nil
		}
		if line, err = namedfile.ExpandHome(line); err != nil {
			return given, err
		}
		if len(given) > 0 {
			line = fromCwd(given[0], line)
		}
		next := append(slices.Clone(given), line)
		if _, err := o.open(ctx, next); err != nil {
			if problems, ok := errors.AsType[workspace.RootErrors](err); ok {
				problems[0].Path = filepath.Clean(problems[0].Path)
				err = errors.New(usage.DescribeRootError(problems[0], "the folder", "the folder"))
			}
			o.tell("%v (Tab completes a path)", err)
			if len(given) > 0 {
				o.tell("Your earlier folders are kept. Enter another one.")
			}
			continue
		}
		given, start = next, next[0]
		question = "Another folder for it, such as ../shared (Enter to end):"
	}
}

// fromCwd returns a path that belongs to the working directory cwd. A relative one starts there, as
// in a session, unless it exists only in the current directory.
func fromCwd(cwd, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	inCwd := cwd + string(filepath.Separator) + path
	if _, err := os.Stat(inCwd); err != nil && namedfile.IsDir(path) {
		return path
	}
	return inCwd
}

// open opens the folders that the flags name, closes them, and returns them as the configuration
// names them.
func (o *run) open(ctx context.Context, folders []string) ([]workspace.Root, error) {
	paths, err := usage.AbsolutePaths(folders...)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return nil, fmt.Errorf("%s is not UTF-8, but the configuration must be",
				text.Printable(path))
		}
	}
	roots, err := workspace.NewRoots(paths[0], paths[1:])
	if err != nil {
		return nil, err
	}
	w, err := workspace.Open(ctx, roots, o.Workspace)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	opened := w.Opened()
	for i, root := range opened {
		path := root.Dir.String()
		if filepath.Clean(path) != path { // "." or ".." from the command line
			opened[i].Dir = root.Real
		}
	}
	return opened, nil
}

// chooseEditor returns the editor that a flag names or the user chooses.
func (o *run) chooseEditor(ctx context.Context) (editor, error) {
	all := editors()
	options := make([]option, len(all))
	for i, e := range all {
		options[i] = option{e.name, e.Title}
	}
	switch found := find(options, o.Editor); {
	case len(found) == 1:
		return all[found[0]-1], nil
	case len(found) > 1:
		return editor{}, usage.Errorf("--editor: %q could be any of %s", o.Editor,
			text.JoinFunc(found, ", ", func(number int) string { return all[number-1].name }))
	case o.Editor != "":
		return editor{}, usage.Errorf("--editor: there is no %q%s", o.Editor,
			cmp.Or(meant(options, o.Editor),
				"; choose one of: "+strings.Join(EditorNames(), ", ")))
	case o.user == nil:
		return all[len(all)-1], nil
	}
	i, err := o.choose(ctx, "Which editor do you use?", options, len(all)-1, nil)
	return all[i], err
}

// write shows how the configuration file changes and writes it if the user agrees.
func (o *run) write(ctx context.Context) error {
	content, err := o.new.Text()
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	fmt.Fprintln(o.dialog)
	switch {
	case bytes.Equal(content, o.old):
		o.tell("%s was not changed.", text.Printable(o.path))
		return nil
	case o.old == nil && string(content) == "{}\n" && o.path == config.DefaultPath():
		o.tell("Nothing to change in %s.", text.Printable(o.path))
		return nil
	}
	if _, err := config.Parse(o.path, bytes.Clone(content)); err != nil {
		return usage.Errorf("%v", err)
	}
	if o.old == nil {
		o.tell("New file %s:", text.Printable(o.path))
		for line := range strings.Lines(string(content)) {
			fmt.Fprintf(o.dialog, "  %s\n", text.Plain(strings.TrimSuffix(line, "\n")))
		}
	} else {
		o.tell("Changes:")
		_ = terminal.Diff(o.dialog,
			conversation.Diff{Path: o.path, Old: string(o.old), New: string(content)})
	}
	if err := o.confirm(ctx); err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(o.file), 0o700); err == nil {
		err = privatefile.Swap(o.file, o.old, content, o.perm)
	}
	switch {
	case errors.Is(err, privatefile.ErrChanged):
		return fmt.Errorf("%s has changed in the meantime; nothing was written: run setup again",
			o.path)
	case err != nil:
		return fmt.Errorf("cannot write the configuration: %w; --config FILE writes another file",
			err)
	}
	o.tell("Wrote %s.", text.Printable(o.path))
	return nil
}

// confirm asks whether to write the file. It returns an error if not.
func (o *run) confirm(ctx context.Context) error {
	for o.user != nil {
		line, err := o.ask(ctx, "Write it? [Y] Yes  [n] No:", nil)
		if err != nil {
			return err
		}
		switch strings.ToLower(line) {
		case "", "y", "yes":
			return ctx.Err()
		case "n", "no":
			return errors.New("nothing was written")
		}
		o.tell("Type y or n.")
	}
	return ctx.Err()
}

// printSnippet prints what the user adds to the editor so that it starts acp-agent, with an agent
// behind it unless that is "".
func (o *run) printSnippet(e editor, agent string) error {
	program, err := programPath()
	if err != nil {
		return err
	}
	var args []string
	if o.path != config.DefaultPath() {
		args = append(args, "--config", o.path)
	}
	args = append(args, o.Arguments...)
	if !e.SendsFolders || o.KeepDirs {
		args = append(args, "--keep-dirs")
	}
	where := "Let your editor start acp-agent as an ACP agent:"
	file, hint := e.path(runtime.GOOS), ""
	if file != "" {
		where = fmt.Sprintf("Add this to %s, for %s:", file, e.Title)
	}
	if strings.HasSuffix(file, ".json") {
		key := strings.Split(e.snippet, `"`)[1]
		hint = fmt.Sprintf("If the file has other settings, add only %q to them; "+
			"if it has that too, only what is in it.\n", key)
	}
	if e.Names != nil && e.Names[agent] == "" {
		hint = fmt.Sprintf("Select %s in the editor; acp-agent will run in its place.\n",
			e.Names[defaultName])
	}
	if e.Needs != "" {
		hint += "It needs " + e.Needs + ".\n"
	}
	failed := terminal.Say(o.Out, "\n%s\n", where)
	_, err = fmt.Fprintln(o.Out, e.render(e.nameOf(agent), program, args))
	return cmp.Or(failed, err, terminal.Say(o.Out, "%sThen type %s in a new session: it lists the "+
		"folders. acp-agent doctor tells you what's wrong.", hint, cmp.Or(e.Roots, "/roots")))
}

// programPath returns the path of this program. It prefers the path in PATH if that is the same
// file, because that path stays valid when the program is replaced.
func programPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath("acp-agent")
	if err == nil && filepath.IsAbs(found) && namedfile.Same(self, found) {
		return found, nil
	}
	return self, nil
}
