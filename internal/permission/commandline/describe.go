package commandline

import (
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// TakesMore reports whether other words may follow those of a rule.
func TakesMore(rule []string) bool {
	used, _ := find(rule)
	return used.letters+used.options+used.passed+used.operands != ""
}

// Describe says for a person what a rule covers besides its words, in Markdown. It is "" if the
// rule covers nothing else.
func Describe(rule []string) string {
	used, _ := find(rule)
	var covers []string
	var names []string
	for _, letter := range used.letters {
		names = append(names, "-"+string(letter))
	}
	for _, o := range slices.Concat(used.allOptions(), optionsOf(used.passed)) {
		names = append(names, o.name)
	}
	if len(names) > 0 {
		covers = append(covers, "these options: "+text.Code(strings.Join(names, " ")))
	}
	switch operands := used.operands; {
	case slices.ContainsFunc([]string{"FILE", "PATH", "PKG"}, func(kind string) bool {
		return strings.Contains(operands, kind)
	}):
		covers = append(covers, "paths in the folders of this session")
	case operands != "":
		covers = append(covers, "other targets")
	}
	if len(covers) == 0 {
		return ""
	}
	return "If you always allow " + text.Code(strings.Join(rule, " ")) + " in this folder, it is " +
		"not asked for again with " + strings.Join(covers, " and ") +
		". Anything else is asked for."
}
