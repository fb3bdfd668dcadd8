package mcpclient

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// Candidate is a server that was found in a repository, which nobody starts before the user has allowed it (A25).
type Candidate struct {
	// Root is the real path of the root that it was found in, File the file that names it.
	Root workspace.Dir
	File string
	// Config is what the file says, with nothing replaced in it. All of it is hashed; values of the environment and
	// headers are shown only where they can change what is run.
	Config Config
}

// ID names the consent for c: the hash of what is allowed, which is root, name, what is started or reached, where, and
// what it is given. Another value in its environment can have the same command do something else.
func (c Candidate) ID() ConsentID {
	given := func(pairs []Pair) []string {
		all := make([]string, len(pairs))
		for i, p := range pairs {
			all[i] = strconv.Itoa(len(p.Name)) + " " + p.Name + "=" + p.Value
		}
		slices.Sort(all)
		return all
	}
	hash := sha256.New()
	for _, part := range [][]string{
		{c.Root.String(), c.Config.Name, string(c.Config.Transport), c.Config.Command, c.Config.Dir, c.Config.URL},
		c.Config.Args, given(c.Config.Env), given(c.Config.Headers),
	} {
		fmt.Fprintf(hash, "%d\n", len(part))
		for _, s := range part {
			fmt.Fprintf(hash, "%d %s\n", len(s), s)
		}
	}
	return ConsentID(hex.EncodeToString(hash.Sum(nil)))
}

// describe is all that would be started or reached, quoted and in a block, so that nothing in it can pass for something else
// or hide what is beside it.
func (c Candidate) describe() string {
	var b strings.Builder
	if c.Config.Transport == Stdio {
		b.WriteString("Command: " + strconv.Quote(c.Config.Command) + "\n")
		for i, arg := range c.Config.Args {
			fmt.Fprintf(&b, "Argument %d: %s\n", i+1, strconv.Quote(arg))
		}
		if c.Config.Dir != "" {
			b.WriteString("In the folder: " + strconv.Quote(c.Config.Dir) + "\n")
		}
	} else {
		b.WriteString("URL: " + strconv.Quote(c.Config.URL) + "\n")
	}
	for _, p := range c.Config.Env {
		text := p.Name
		if steers(p.Name) {
			text += "=" + p.Value
		}
		b.WriteString("Environment: " + strconv.Quote(text) + taking(p.Value) + "\n")
	}
	for _, p := range c.Config.Headers {
		b.WriteString("Header: " + strconv.Quote(p.Name) + taking(p.Value) + "\n")
	}
	return "The file below names this MCP server. It runs with your rights, outside the session's containment.\n\n" +
		fenced("File: "+strconv.Quote(c.File)+"\n"+strings.TrimSuffix(b.String(), "\n"))
}

// taking says what a value that is not shown takes from the user's environment, "" if nothing.
func taking(value string) string {
	var names []string
	ReplaceVariables(value, func(v Variable) string {
		if !v.IsFolder() {
			names = append(names, strconv.Quote(v.Name))
		}
		return ""
	})
	if names == nil {
		return ""
	}
	return ", with " + strings.Join(names, " and ") + " of your environment"
}

// steers reports whether the value of a variable can have a program run other code than its command says. Other values
// may be secrets, and are not shown.
func steers(name string) bool {
	name = strings.ToUpper(name)
	if strings.HasPrefix(name, "GIT_CONFIG_KEY_") { // it names a setting
		return true
	}
	for _, prefix := range []string{"LD_", "DYLD_", "NODE_", "NPM_", "PYTHON", "RUBY", "PERL", "JAVA", "JDK_", "BUN_", "DENO_", "UV_", "PIP_", "GIT_", "GO",
		"CARGO", "RUSTC", "DOTNET_", "COR_", "CORECLR_", "ELECTRON_", "LUA_", "PHP", "XDG_", "R_", "DOCKER_", "SSL_CERT_"} {
		if strings.HasPrefix(name, prefix) {
			return !strings.Contains(name, "TOKEN") && !strings.Contains(name, "KEY") && !strings.Contains(name, "SECRET")
		}
	}
	return slices.Contains([]string{"PATH", "PATHEXT", "ENV", "BASH_ENV", "SHELL", "IFS", "CLASSPATH", "_JAVA_OPTIONS", "HOME",
		"USERPROFILE", "APPDATA", "LOCALAPPDATA", "ZDOTDIR", "COMSPEC", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "EDITOR", "BROWSER", "PAGER"}, name)
}
