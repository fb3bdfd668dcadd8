package tools

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of 181 skills in three folders a model finds those that fit its task.
//
// Clause D1.
func TestFindSkills(t *testing.T) {
	skill := func(name, description string) string {
		return "---\nname: " + name + "\ndescription: " + description + "\n---\nDo it.\n"
	}
	files := fileTree{
		"cwd/.agents/skills/tables/SKILL.md":      skill("tables", "Reads a table of a PDF."),
		"other/.claude/skills/pdf-forms/SKILL.md": skill("pdf-forms", "Fills in a form."),
	}
	for i := range 179 {
		files[fmt.Sprintf("large/skills/l%03d/SKILL.md", i)] =
			skill(fmt.Sprintf("l%03d", i), "Does a thing, one of many.")
	}
	top := plant(t, files)
	in := func(path string) string { return filepath.Join(top, filepath.FromSlash(path)) }
	h := serve(t, openRoots(t, in("cwd"), in("other"), in("large")), Options{})
	require.Equal(t, `pdf-forms: Fills in a form.
  `+in("other/.claude/skills/pdf-forms/SKILL.md")+`
tables: Reads a table of a PDF.
  `+in("cwd/.agents/skills/tables/SKILL.md")+`
`, h.said("find_skills", args{"query": "PDF form"}))
	require.Contains(t, h.said("find_skills", args{"query": "thing"}),
		in("large/skills/l019/SKILL.md")+"\n[159 more: use words that fit fewer skills]\n")
	require.Equal(t, "No skill in the folders has one of these words in its name or description.\n",
		h.said("find_skills", args{"query": "absent"}))
}
