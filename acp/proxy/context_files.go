package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/privatefile"
	"github.com/acp-agent/acp-agent/internal/text"
)

// contextVariable returns the environment variable that makes the agent read the files, or "" if there are
// no files.
func contextVariable(f profiles.ContextFiles) string {
	switch {
	case f == profiles.CopilotInstructions:
		return "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"
	case f == profiles.PiExtension && runtime.GOOS != "windows":
		return "PI_ACP_PI_COMMAND"
	}
	return ""
}

// contextValue returns the value of the variable for files in dir. set is the user's value, or "".
func contextValue(f profiles.ContextFiles, dir, set string) string {
	switch {
	case f == profiles.PiExtension:
		return filepath.Join(dir, "pi")
	case set != "":
		return set + "," + dir
	}
	return dir
}

// writeContext writes the files for a text. The text may be "".
func writeContext(f profiles.ContextFiles, dir, set, context string) error {
	if f == profiles.CopilotInstructions {
		path := filepath.Join(dir, "acp-agent.instructions.md")
		return privatefile.WriteFile(path, []byte(context))
	}
	extension, start := filepath.Join(dir, "context.ts"), text.ShellWord(cmp.Or(set, "pi"))
	if context != "" {
		start += " --extension " + text.ShellWord(extension)
	}
	code := fmt.Sprintf(`const text = %s;
export default (pi) => pi.on("before_agent_start", (event) => {
  const o = event.systemPromptOptions;
  o.appendSystemPrompt = [o.appendSystemPrompt, text].filter(Boolean).join("\n\n");
});
`, backend.Encode(context))
	return errors.Join(privatefile.WriteFile(extension, []byte(code)),
		privatefile.Replace(filepath.Join(dir, "pi"),
			[]byte("#!/bin/sh\nexec "+start+" \"$@\"\n"), 0o700))
}

// contextDir is the directory with the context files of a process.
type contextDir struct {
	files     profiles.ContextFiles
	path, set string
}

// contextDir creates the directory for the context files of a process that command starts, and
// returns command with the environment for them. It returns nil if the agent reads no files.
func (p *proxy) contextDir(command Command) (Command, *contextDir) {
	o := p.options
	variable := contextVariable(o.Profile.Context.Files)
	if variable == "" || o.RelayDir == "" {
		return command, nil
	}
	d := &contextDir{files: o.Profile.Context.Files}
	d.set, _ = p.getenv(variable)
	err := privatefile.MakeDir(o.RelayDir)
	if err == nil {
		removeStaleContext(o.RelayDir)
		d.path, err = os.MkdirTemp(o.RelayDir, fmt.Sprintf("%s%d-", contextPrefix, os.Getpid()))
	}
	if err == nil {
		err = writeContext(d.files, d.path, d.set, "")
	}
	if err != nil {
		p.log.Warn("cannot create files for the agent's system prompt: "+
			"using the prompt instead", "error", err)
		return command, nil
	}
	command.Env = append(command.Env, variable+"="+contextValue(d.files, d.path, d.set))
	return command, d
}

// remove removes the files. A nil d does nothing.
func (d *contextDir) remove() {
	if d != nil {
		_ = os.RemoveAll(d.path)
	}
}

// contextPrefix begins the names of directories with context files, before the process id.
const contextPrefix = "context-"

// removeStaleContext removes directories that killed processes left behind in dir.
func removeStaleContext(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, contextPrefix+"*"))
	for _, path := range old {
		var pid int
		name := strings.TrimPrefix(filepath.Base(path), contextPrefix)
		if _, err := fmt.Sscanf(name, "%d-", &pid); err == nil && !isRunning(pid) {
			_ = os.RemoveAll(path)
		}
	}
}

// isRunning reports whether there may be a process with this id.
func isRunning(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = process.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrPermission)
}

// tellByFiles writes the context into the context files of the child, which is about to open the
// session.
func (s *session) tellByFiles(r openPlan) {
	var told []string
	if d := r.child.context; d != nil {
		text, digests := s.contextText(r.mode)
		if err := writeContext(d.files, d.path, d.set, text); err == nil {
			told = digests
		} else {
			s.proxy.log.Warn("cannot tell the agent what is in the folders before the first prompt",
				"error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.toldByFiles = told
}
