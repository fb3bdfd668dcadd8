package discovery

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func FuzzFrontmatter(f *testing.F) {
	for _, seed := range []string{
		"---\nname: x\ndescription: y\n---\nbody", "---\nglobs: **/*.ts,*.{a,b}\nalwaysApply: false\n---\n", "---\n- a\n---", "---\na: &x [*x]\n---\n",
		"---\ndescription: >-\n  a\n  b\n---\n", "---\n", "", "\n---\n# \n\n<!-- x -->\nDo it.\nmore", "---\nargument-hint: [a] [b]\n---\n", "---\npaths:\n  - 'a'\n  - b\n---\nx",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		for _, r := range []row{{anchored: true, asked: true}, {anchored: true}, {}, {text: true}} {
			a := Artifact{State: Active, row: r}
			readInstruction(&a, text)
			check(t, a)
			a.appliesTo("src/deep/file.ts")
		}
		a := Artifact{State: Active, rel: ".agents/skills/x/SKILL.md"}
		readSkill(&a, text)
		check(t, a)
		if a.State == Active && (a.Name == "" || a.Description == "") {
			t.Fatalf("a skill without a name or description counts: %+v", a)
		}
		a = Artifact{State: Active, rel: ".claude/commands/x.md"}
		readCommand(&a, text)
		check(t, a)
	})
}

// check says what is wrong with an artifact, whatever it was made of.
func check(t *testing.T, a Artifact) {
	t.Helper()
	if hidden := func(r rune) bool { return !unicode.IsPrint(r) }; strings.ContainsFunc(a.Description+a.Hint, hidden) || utf8.RuneCountInString(a.Description) > maxDescription {
		t.Fatalf("not a line: %q", a.Description)
	}
	if (a.State == Active) != (a.Reason == "") {
		t.Fatalf("state and reason: %+v", a)
	}
}

func FuzzServers(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers": {"x": {"command": "x", "args": ["a"], "env": {"A": "b"}}}}`, `{"servers": {"x": {"url": "http://u:p@h?q=1"}}, "inputs": [{"id": "k"}]}`,
		"{/* c */ \"servers\": {\"a\": {},},} // x", `{"mcpServers": []} // x`, `"\`, `{"mcpServers": {"x": null}}`, `{"mcpServers": {"x": {"command": "x", "env": null, "environment": {"A": "b"}}}}`, `/*`, `{"servers": {"x": {"url": "%zz@?a=b"}}}`,
	} {
		f.Add(seed)
	}
	l := defaultLimits
	f.Fuzz(func(t *testing.T, text string) {
		plain, err := standardJSON([]byte(text))
		if err == nil && (len(plain) != len(text) || !json.Valid(plain) ||
			(json.Valid([]byte(text)) && string(plain) != text)) {
			t.Fatalf("%q became %q", text, plain)
		}
		for _, member := range []string{"mcpServers", "servers"} {
			base := Artifact{State: Active, Kind: MCPServer, row: row{member: member}}
			for _, a := range readServers(base, text, l) {
				if (a.State == Active) != (a.Reason == "") ||
					(a.State == Active) != (a.Server != nil) {
					t.Fatalf("%+v", a)
				}
				if _, err := json.Marshal(a.Server); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func FuzzImports(f *testing.F) {
	f.Add("See @a.md, `@b` and\n```\n@c\n```\n@d\\ e.md ``x` @y`` @")
	f.Fuzz(func(t *testing.T, text string) {
		for _, path := range importsOf(text) {
			if path == "" || strings.Contains(path, "\n") {
				t.Fatalf("%q imports %q", text, path)
			}
		}
	})
}
