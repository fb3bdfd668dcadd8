package mcpclient

import (
	"regexp"
	"strings"
)

// Variable is a part of a configuration file that is left to who starts the server: ${NAME}, ${NAME:-default},
// ${env:NAME} or ${workspaceFolder}.
type Variable struct {
	// Text is the variable as it is written, Name what is to be looked up.
	Text, Name string
	// Default is what it is where nothing has that name. It counts if HasDefault.
	Default    string
	HasDefault bool
}

// IsFolder reports whether it is the folder of the file, and nothing of the environment.
func (v Variable) IsFolder() bool { return v.Name == "workspaceFolder" && !v.HasDefault }

var variable = regexp.MustCompile(`\$\{[^}]*\}`)

// ReplaceVariables is text with what replace gives in the place of each variable.
func ReplaceVariables(text string, replace func(Variable) string) string {
	return variable.ReplaceAllStringFunc(text, func(written string) string {
		v := Variable{Text: written}
		name := strings.TrimPrefix(written[len("${"):len(written)-len("}")], "env:")
		v.Name, v.Default, v.HasDefault = strings.Cut(name, ":-")
		return replace(v)
	})
}
