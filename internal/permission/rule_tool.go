package permission

import (
	"errors"
	"strings"
	"unicode"
)

// toolRule is a rule for Tool, about a tool of an MCP server.
type toolRule struct {
	server, tool string // tool is "*" for all
	readOnly     bool
}

func parseTool(rest string) (matcher, error) {
	var r toolRule
	rest, r.readOnly = strings.CutSuffix(rest, " read-only")
	r.server, r.tool, _ = strings.Cut(rest, ".")
	switch {
	case r.server == "" || r.tool == "" || strings.ContainsAny(rest, " \t"):
		return r, errors.New("a tool rule is tool SERVER.TOOL or tool SERVER.*, with read-only " +
			"after it for those that only read")
	case r.readOnly && r.tool != "*":
		return r, errors.New("read-only follows SERVER.*")
	}
	return r, nil
}

func (r toolRule) String() string {
	s := r.server + "." + r.tool
	if r.readOnly {
		s += " read-only"
	}
	return s
}

func (r toolRule) allows(a Action) bool {
	return r.server == a.Tool.Server && (r.tool == a.Tool.Name || r.tool == "*") && a.Tool.Name != "" &&
		!strings.Contains(a.Tool.Server, ".") && (!r.readOnly || a.Tool.ReadOnly)
}

func (r toolRule) touches(a *prepared) bool {
	return a.Tool.Server != "" && sameName(r.server, a.Tool.Server) &&
		(r.tool == "*" || sameName(r.tool, a.Tool.Name)) && (!r.readOnly || a.Tool.ReadOnly) ||
		r.tool != "*" && sameName(r.server+r.tool, a.Tool.Server+a.Tool.Name)
}

func (toolRule) mayTouch(*prepared) bool { return false }

// sameName reports whether two names are the same but for the characters and the case that some
// agents change.
func sameName(a, b string) bool { return plainName(a) == plainName(b) }

func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(unicode.ToUpper(r))
		}
		return -1
	}, name)
}

func offerTool(a Action) (written string, in Scope) {
	in = Scope{Root: a.Where.Root, Server: a.Tool.Config}
	switch {
	case a.Tool.Found:
		in.Session = a.Session
	case a.Tool.Config == "":
		return "", in
	}
	return "tool " + a.Tool.Server + "." + a.Tool.Name, in
}
