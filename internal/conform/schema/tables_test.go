package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/schema"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// definitions are the $defs of a schema by name.
type definitions map[string]*jsonschema.Schema

// readDefinitions returns the definitions of the stable and of the unstable schema.
func readDefinitions(t *testing.T) (stable, unstable definitions) {
	t.Helper()
	read := func(name string) definitions {
		var all jsonschema.Schema
		require.NoError(t, json.Unmarshal(embedded(t, name), &all))
		return all.Defs
	}
	return read("schema.json"), read("schema.unstable.json")
}

// methods returns the methods of a schema as "side method".
func (all definitions) methods() (methods []string) {
	for _, d := range all {
		if method, has := d.Extra["x-method"]; has {
			methods = append(methods, fmt.Sprint(d.Extra["x-side"], " ", method))
		}
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

// variants returns the values that a member has in the variants of a union.
func (all definitions) variants(t *testing.T, union, member string) (values []string) {
	t.Helper()
	require.Contains(t, all, union)
	for _, v := range slices.Concat(all[union].OneOf, all[union].AnyOf) {
		require.Contains(t, v.Properties, member, union)
		if value := v.Properties[member].Const; value != nil { // unlike that of other variants
			values = append(values, (*value).(string))
		}
	}
	require.NotEmpty(t, values)
	return values
}

// paths returns the paths of the members of a definition, and of what they refer to.
func (all definitions) paths(d *jsonschema.Schema, path string) (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		if name == "_meta" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		paths = append(paths, at)
		member := d.Properties[name]
		for _, part := range append(slices.Concat(member.AllOf, member.AnyOf, member.OneOf), member) {
			if ref, ok := strings.CutPrefix(part.Ref, "#/$defs/"); ok {
				paths = append(paths, all.paths(all[ref], at)...)
			}
		}
	}
	return paths
}

// table returns the rows of a table in package protocol. A row ends with empty columns.
func table(t *testing.T, name string) (rows [][]string) {
	t.Helper()
	content, err := os.ReadFile("../../wire/protocol/tables.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(content)) {
		columns := strings.Split(strings.TrimSpace(line), "\t")
		if columns[0] == name {
			rows = append(rows, append(columns[1:], "", "", ""))
		}
	}
	require.NotEmpty(t, rows, name)
	return rows
}

// known returns what a table has rows for, as a schema names it.
func known(t *testing.T, name string) (all []string) {
	for _, row := range table(t, name) {
		if name == "method" {
			row = []string{row[0] + " " + row[1]}
		}
		all = append(all, row[0])
	}
	return all
}

// found returns what a schema has for each table.
func (all definitions) found(t *testing.T) map[string][]string {
	return map[string][]string{
		"method":  all.methods(),
		"update":  all.variants(t, "SessionUpdate", "sessionUpdate"),
		"client":  all.paths(all["ClientCapabilities"], ""),
		"agent":   all.paths(all["AgentCapabilities"], ""),
		"content": all.variants(t, "ContentBlock", "type"),
		"part":    all.variants(t, "ToolCallContent", "type"),
	}
}

// What agents of others send is compared with the unstable schema alone.
func TestUnstableSchemaHasTheStableOne(t *testing.T) {
	stable, unstable := readDefinitions(t)
	for name, definition := range stable {
		for member := range definition.Properties {
			require.Contains(t, unstable[name].Properties, member, name)
		}
	}
}

// Whatever the newest schema has, the tables of package protocol have a row for: a new method,
// update, capability or type of content fails here until somebody has decided what to do with it.
//
// Clause A37.
func TestTablesHaveTheSchema(t *testing.T) {
	stable, unstable := readDefinitions(t)
	for name, all := range map[string]definitions{"stable": stable, "unstable": unstable} {
		for table, found := range all.found(t) {
			t.Run(fmt.Sprintf("A37/%s in the %s schema", table, name), func(t *testing.T) {
				rows := known(t, table)
				require.Subset(t, rows, found,
					"add what is missing to the tables in internal/wire/protocol, and decide what to do with it")
				require.Len(t, slices.Compact(slices.Sorted(slices.Values(rows))), len(rows))
			})
		}
	}
}

// What an update or a type of content needs is a capability of a client.
//
// Clause A37.
func TestCapabilitiesOfUpdates(t *testing.T) {
	paths := append(known(t, "client"), "")
	for _, k := range protocol.UpdateKinds() {
		require.Contains(t, paths, k.Needs)
	}
	for _, part := range table(t, "part") {
		require.Contains(t, paths, part[1])
	}
}

// A content block needs the strings that the table says, and may have others. An embedded resource
// needs an object.
//
// Clause A37.
func TestRequiredContent(t *testing.T) {
	stable, unstable := readDefinitions(t)
	for _, all := range []definitions{stable, unstable} {
		for _, v := range all["ContentBlock"].OneOf {
			block, ok := protocol.BlockType((*v.Properties["type"].Const).(string))
			require.True(t, ok)
			content := all[strings.TrimPrefix(v.AllOf[0].Ref, "#/$defs/")]
			required, optional := content.Required, []string(nil)
			for name, p := range content.Properties {
				if slices.Equal(p.Types, []string{"string", "null"}) {
					optional = append(optional, name)
				}
			}
			slices.Sort(optional)
			require.Equal(t, block.Optional, optional, block.Name)
			if block.Name == "resource" {
				require.Equal(t, []string{"resource"}, required)
				continue
			}
			require.Equal(t, block.Required, required)
		}
	}
}

// docs/protocol.md names the schema and what is not served. ACP_AGENT_UPDATE=1 rewrites that.
//
// Clause A37.
func TestDocs(t *testing.T) {
	const (
		page  = "../../../docs/protocol.md"
		begin = "<!-- Made by TestDocs in internal/conform/schema. -->\n"
		end   = "<!-- End of what is made. -->\n"
	)
	stable, unstable := readDefinitions(t)
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(content), begin)
	require.True(t, ok)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := head + begin + describe(t, stable, unstable) + end + tail
	if os.Getenv("ACP_AGENT_UPDATE") != "" {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content))
}

// describe returns the part of docs/protocol.md about the schema.
func describe(t *testing.T, stable, unstable definitions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "acp-agent speaks version 1 of the protocol. A test compares it with the schema in version %s of\n"+
		"the npm package `@agentclientprotocol/sdk`, stable and unstable. What is not in that version\n"+
		"comes from later releases or from withdrawn drafts.\n\n", schema.Version)
	has := func(table, row string) string {
		switch {
		case slices.Contains(stable.found(t)[table], row):
			return "stable"
		case slices.Contains(unstable.found(t)[table], row):
			return "unstable"
		}
		return "not in this version"
	}
	b.WriteString("| not served by acp-agent itself | of | schema | | why |\n|---|---|---|---|---|")
	last := ""
	add := func(name, of, in, handling, why string) {
		if handling == string(protocol.Served) {
			return
		}
		rest := fmt.Sprintf(" | %s | %s | %s | %s |", of, in, handling, why)
		if rest == last {
			fmt.Fprintf(&b, ", `%s`", name)
			return
		}
		fmt.Fprintf(&b, "%s\n| `%s`", last, name)
		last = rest
	}
	for _, m := range table(t, "method") {
		side, name := m[0], m[1]
		add(name, "the "+side, has("method", side+" "+name), m[2], m[3])
	}
	for _, c := range table(t, "agent") {
		add(c[0], "`agentCapabilities`", has("agent", c[0]), c[1], c[3])
	}
	b.WriteString(last + "\n")
	b.WriteString("\n| update or content | schema | stored | only for clients with |\n|---|---|---|---|\n")
	for _, k := range protocol.UpdateKinds() {
		if k.Needs != "" || k.Keep == protocol.Nothing {
			fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", k.Name, has("update", k.Name),
				map[bool]string{true: "no", false: "yes"}[k.Keep == protocol.Nothing], k.Needs)
		}
	}
	for _, part := range table(t, "part") {
		if needs := part[1]; needs != "" {
			fmt.Fprintf(&b, "| `%s` in a tool call | %s | yes | `%s` |\n", part[0],
				has("part", part[0]), needs)
		}
	}
	return b.String()
}
