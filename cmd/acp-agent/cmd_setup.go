package main

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
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/acp-agent/acp-agent/internal/config"
	"github.com/acp-agent/acp-agent/internal/namedfile"
	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

const setupHelp = `setup writes the configuration file and prints what to add to your editor. On a
terminal it asks what should answer, what an agent may do by itself, which
folders belong together, and for which editor; then it shows how the file
changes, and writes it if you agree. A flag is an answer to its question. With
--yes nothing is asked, and what no flag says stays as it is.

What should answer is a known agent, --agent; another one, as a command after
"--"; a model that is configured or that a server on this machine offers,
--model; or neither, --agent=. The servers of Ollama, LM Studio, llama.cpp and
vLLM are found at their usual ports, others with --server.

Folders that belong together are a working directory, --cwd, and those that
sessions in it have as well, --dir. They are used if the editor names none.
Folders that are configured for the same working directory stay.

Comments in the file stay too. Other flags of acp-agent are put into what is
printed.

The exit status is 130 if you interrupted it; then nothing was written.`

const setupExample = `  acp-agent setup
  acp-agent setup --yes --agent opencode --cwd ~/app --dir ~/lib --editor zed
  acp-agent setup --yes --model qwen3
  acp-agent setup --yes --editor jetbrains -- my-agent --acp`

// setupNeedsAnswers is the error if nobody can be asked.
const setupNeedsAnswers = `setup asks questions on a terminal, and this is not one. Flags can answer them instead:

  acp-agent setup --yes --agent NAME --cwd DIR --dir DIR --editor EDITOR

agents that were found: %s (acp-agent agents lists all)
editors: %s
For models and more: acp-agent setup --help`

// newSetup returns the command that writes the configuration file.
func newSetup(s streams, set *settings) *cobra.Command {
	o := setup{streams: s, set: set}
	cmd := &cobra.Command{
		Use:     "setup [flags] [-- COMMAND ARGS...]",
		Short:   "Choose what answers, and folders that belong together",
		Long:    setupHelp,
		Example: setupExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
				return nil
			}
			return usagef("setup takes only the command of an agent, after -- (got %q)", args[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "agent", "model"); err != nil {
				return err
			}
			o.command, o.flags = args, cmd.Flags()
			err := o.run(cmd.Context())
			if errors.Is(err, context.Canceled) {
				fmt.Fprintln(s.err, "\nacp-agent: interrupted; nothing was written")
				return &statusError{statusInterrupted}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.roots.cwd, "cwd", "",
		"the working directory `DIR` that the folders of --dir belong to (default the current one)")
	cmd.Flags().Var((*listValue)(&o.roots.dirs), "dir",
		"the folder `DIR` belongs to the working directory; can be repeated")
	cmd.Flags().StringVar(&o.server, "server", "",
		"look for models at the address `URL`, such as http://127.0.0.1:11434/v1")
	cmd.Flags().StringVar(&o.editor, "editor", "",
		"print what to add to `EDITOR`: "+strings.Join(editorNames(), ", "))
	cmd.Flags().BoolVar(&o.yes, "yes", false, "ask nothing, and write the file")
	cmd.Flags().AddFlagSet(set.flags)
	return cmd
}

func editorNames() []string {
	var names []string
	for _, e := range editors() {
		names = append(names, e.name)
	}
	return names
}

// setup is a run of the setup command.
type setup struct {
	streams
	set   *settings
	flags *pflag.FlagSet

	roots   rootFlags
	command []string // of the agent that should answer
	server  string
	editor  string
	yes     bool

	user *terminal.Typist  // nil to ask nothing
	show *terminal.Printer // where questions are asked
	path string            // of the configuration file
	file string            // the same without links
	old  []byte            // its content, nil if there is none
	perm fs.FileMode       // of the file
	new  *config.Text
}

// run asks, writes the file and prints the snippet. If it fails, nothing has changed.
func (o *setup) run(ctx context.Context) error {
	if o.editor != "" && !slices.Contains(editorNames(), o.editor) {
		return usagef("--editor: %q must be one of: %s", o.editor,
			strings.Join(editorNames(), ", "))
	}
	if err := o.read(); err != nil {
		return err
	}
	if err := o.findTerminal(); err != nil {
		return err
	}
	agent, err := o.addAnswer(ctx)
	if err != nil {
		return err
	}
	if err := o.addFolders(ctx); err != nil {
		return err
	}
	chosen, err := o.chooseEditor(ctx)
	if err != nil {
		return err
	}
	if err := o.write(ctx); err != nil {
		return err
	}
	return o.printSnippet(chosen, agent)
}

// read reads the configuration file, if there is one. It must be valid, and writable.
func (o *setup) read() (err error) {
	path := cmp.Or(o.set.configPath, os.Getenv("ACP_AGENT_CONFIG"), config.DefaultPath())
	if path == "" {
		return usagef("cannot determine where the configuration file belongs; use --config FILE")
	}
	if o.path, err = filepath.Abs(path); err != nil {
		return err
	}
	o.file, o.perm = o.path, 0o600
	o.set.config = config.Config{Path: o.path}
	if _, err := os.Lstat(o.path); err == nil {
		if o.file, err = filepath.EvalSymlinks(o.path); err != nil {
			return usagef("configuration: %s is a link to a file that does not exist", o.path)
		}
		if o.old, err = namedfile.Read(o.file); err != nil {
			return usagef("configuration: %v", namedfile.Explain(err))
		}
		info, err := os.Stat(o.file)
		if err != nil {
			return err
		}
		o.perm = info.Mode().Perm()
		f, err := os.OpenFile(o.file, os.O_WRONLY, 0)
		if err != nil {
			return usagef("configuration: %v", namedfile.Explain(err))
		}
		if err := f.Close(); err != nil {
			return err
		}
		if len(bytes.TrimSpace(o.old)) > 0 {
			if o.set.config, err = config.Parse(o.path, bytes.Clone(o.old)); err != nil {
				return usagef("%v\nNothing was changed: correct the file, or move it away", err)
			}
		}
	}
	o.new, err = config.ParseText(o.old)
	return err
}

// findTerminal decides where to ask: on the terminal of standard input, unless --yes is given.
func (o *setup) findTerminal() error {
	o.show = terminal.NewPrinter(o.out)
	switch {
	case o.yes:
		return nil
	case o.interactive() && terminal.Is(o.out):
	case o.interactive() && terminal.Is(o.err):
		o.show = terminal.NewPrinter(o.err)
	default:
		return usagef(setupNeedsAnswers, strings.Join(o.foundAgents(), ", "),
			strings.Join(editorNames(), ", "))
	}
	o.user = terminal.NewTypist(o.in.(*os.File))
	return nil
}

func (o *setup) foundAgents() []string {
	profiles, _ := o.set.agents() // without those of the registry if it cannot be read
	var names []string
	for _, p := range profiles {
		if reportAgent(p, o.set.config).Found != "" {
			names = append(names, p.Name)
		}
	}
	if names == nil {
		return []string{"none"}
	}
	return names
}

// tell shows a sentence.
func (o *setup) tell(format string, args ...any) {
	o.show.Note("%s", text.Plain(fmt.Sprintf(format, args...)))
}

// ask asks for a line. It returns an error if ctx or the input ends.
func (o *setup) ask(ctx context.Context, question string) (string, error) {
	o.show.EndLine()
	o.show.Print(question + " ")
	line, err := o.user.Read(ctx)
	o.show.Typed()
	if errors.Is(err, io.EOF) && line == "" {
		return "", errors.New("the input ended; nothing was written")
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// choose lets the user choose one of the options by its number. Without a number it is initial.
func (o *setup) choose(
	ctx context.Context, question string, options []string, initial int,
) (int, error) {
	o.show.Note("")
	o.tell("%s", question)
	for i, option := range options {
		o.show.Note("%4d  %s", i+1, text.Printable(option))
	}
	for {
		line, err := o.ask(ctx, fmt.Sprintf("Number [%d]:", initial+1))
		if err != nil {
			return 0, err
		}
		if line == "" {
			return initial, nil
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
			return n - 1, nil
		}
		o.tell("Type a number from 1 to %d.", len(options))
	}
}

// addFolders adds the folders that belong together to the configuration.
func (o *setup) addFolders(ctx context.Context) error {
	switch {
	case len(o.roots.dirs) > 0:
		o.roots.cwd = cmp.Or(o.roots.cwd, ".")
	case o.flags.Changed("cwd"):
		return usagef("--cwd needs at least one --dir: a folder that belongs to it")
	case o.user == nil:
		return nil
	default:
		if err := o.askFolders(ctx); err != nil || len(o.roots.dirs) == 0 {
			return err
		}
	}
	opened, err := o.open(ctx, o.roots)
	if err != nil {
		return usagef("%v", withFlagNames(err, "cwd", "dir"))
	}
	cwd, others := opened[0], opened[1:]
	entry := config.Workspace{Cwd: cwd.path}
	index, known := -1, map[workspace.Dir]bool{cwd.real: true}
	for i, w := range o.set.config.Workspaces {
		dir, err := workspace.ParseDir(w.Cwd)
		if err != nil || workspace.Real(dir) != cwd.real {
			continue
		}
		index = i
		for _, path := range w.Directories {
			if d, err := workspace.ParseDir(dir.Locate(path)); err == nil {
				known[workspace.Real(d)] = true
			}
		}
		break
	}
	for _, folder := range others {
		switch {
		case known[folder.real]:
		case index >= 0:
			o.new.AddDirectory(index, folder.path)
		default:
			entry.Directories = append(entry.Directories, folder.path)
		}
	}
	if len(entry.Directories) > 0 {
		o.new.AddWorkspace(entry)
	}
	return nil
}

// askFolders asks for the working directory and the folders that belong to it, until the user gives
// no more.
func (o *setup) askFolders(ctx context.Context) error {
	o.show.Note("")
	o.tell("Which folders belong together? Most editors send only the one that you work in.")
	var given rootFlags
	question := "Folder that you work in (Enter for none):"
	for {
		line, err := o.ask(ctx, question)
		if err != nil {
			return err
		}
		if line == "" {
			o.roots = given
			return nil
		}
		if line == "~" || strings.HasPrefix(line, "~/") {
			if line, err = config.ResolvePath("", line); err != nil {
				return err
			}
		}
		next := given
		if next.cwd == "" {
			next.cwd = line
		} else {
			next.dirs = append(slices.Clone(next.dirs), line)
		}
		if _, err := o.open(ctx, next); err != nil {
			if problems, ok := errors.AsType[workspace.RootErrors](err); ok {
				err = errors.New(describeRootError(problems[0], "the folder", "the folder"))
			}
			o.tell("%v", err)
			continue
		}
		given, question = next, "Folder that belongs to it (Enter for no more):"
	}
}

// A folder is one that can be opened.
type folder struct {
	path string // absolute
	real workspace.Dir
}

// open opens the folders that the flags name, and closes them.
func (o *setup) open(ctx context.Context, r rootFlags) ([]folder, error) {
	paths, err := absolutePaths(append([]string{r.cwd}, r.dirs...)...)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return nil, fmt.Errorf("%s is not UTF-8, as the configuration must be",
				text.Printable(path))
		}
	}
	roots, err := workspace.NewRoots(paths[0], paths[1:])
	if err != nil {
		return nil, err
	}
	options, err := o.set.workspace()
	if err != nil {
		return nil, err
	}
	w, err := workspace.Open(ctx, roots, options)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var folders []folder
	for _, root := range w.Opened() {
		path := root.Dir.String()
		if filepath.Clean(path) != path { // "." or ".." from the command line
			path = root.Real.String()
		}
		folders = append(folders, folder{path, root.Real})
	}
	return folders, nil
}

// chooseEditor returns the editor that a flag names or the user chooses.
func (o *setup) chooseEditor(ctx context.Context) (editor, error) {
	all := editors()
	if o.editor != "" || o.user == nil {
		i := slices.IndexFunc(all, func(e editor) bool { return e.name == o.editor })
		if i < 0 {
			i = len(all) - 1
		}
		return all[i], nil
	}
	titles := make([]string, len(all))
	for i, e := range all {
		titles[i] = e.title
	}
	i, err := o.choose(ctx, "Which editor do you use?", titles, len(all)-1)
	return all[i], err
}

// write shows how the configuration file changes and writes it if the user agrees.
func (o *setup) write(ctx context.Context) error {
	content, err := o.new.Text()
	if err != nil {
		return err
	}
	o.show.Note("")
	if bytes.Equal(content, bytes.TrimPrefix(o.old, []byte("\uFEFF"))) {
		o.tell("%s stays as it is.", text.Printable(o.path))
		return nil
	}
	if _, err := config.Parse(o.path, bytes.Clone(content)); err != nil {
		return usagef("%v", err)
	}
	if o.old == nil {
		o.tell("New file %s:", text.Printable(o.path))
		for line := range strings.Lines(string(content)) {
			o.show.Note("  %s", text.Plain(strings.TrimSuffix(line, "\n")))
		}
	} else {
		old := string(o.old)
		o.tell("Changes:")
		o.show.Diff(&sdk.ToolCallContentDiff{Path: o.path, OldText: &old, NewText: string(content)})
	}
	if err := o.confirm(ctx); err != nil {
		return err
	}
	now, err := os.ReadFile(o.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, o.old) {
		return fmt.Errorf("%s has changed in the meantime; nothing was written: run setup again", o.path)
	}
	if err := os.MkdirAll(filepath.Dir(o.file), 0o700); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	if err := privatefile.Replace(o.file, content, o.perm); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	o.tell("Wrote %s.", text.Printable(o.path))
	return nil
}

// confirm asks whether to write the file. It returns an error if not.
func (o *setup) confirm(ctx context.Context) error {
	for o.user != nil {
		line, err := o.ask(ctx, "Write it? [y] Yes  [n] No:")
		if err != nil {
			return err
		}
		switch strings.ToLower(line) {
		case "y", "yes":
			return ctx.Err()
		case "n", "no":
			return errors.New("nothing was written")
		}
	}
	return ctx.Err()
}

// printSnippet prints what the user adds to the editor so that it starts acp-agent, with an agent
// behind it unless that is "".
func (o *setup) printSnippet(e editor, agent string) error {
	program, err := programPath()
	if err != nil {
		return err
	}
	var args []string
	if o.path != config.DefaultPath() {
		args = append(args, "--config", o.path)
	}
	asked := []string{"agent", "model", "dir", "keep-dirs"}
	o.set.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(asked, f.Name) {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	if !e.sendsFolders || o.set.flags.Changed("keep-dirs") {
		args = append(args, "--keep-dirs")
	}
	where := "Let your editor start acp-agent as an ACP agent:"
	if e.file != "" {
		where = fmt.Sprintf("Add this to %s, for %s:", e.file, e.title)
	}
	hint := ""
	if e.names != nil && e.names[agent] == "" {
		hint = fmt.Sprintf("Choose %s there: acp-agent answers in its place.\n",
			e.names[defaultName])
	}
	_, err = fmt.Fprintf(o.out, "\n%s\n\n%s\n%sacp-agent doctor checks the installation.\n", where,
		e.render(e.nameOf(agent), program, args), hint)
	return err
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
