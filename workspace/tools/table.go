package tools

import (
	"fmt"
	"strings"
	"sync"
)

// pathInput is the input of tools that take a path only.
type pathInput struct {
	Path string `json:"path"`
}

// aboutPath returns the title of such a tool: a verb and the path, or the default if it is empty.
func aboutPath(verb, byDefault string) func(pathInput) string {
	return func(in pathInput) string { return about(verb, in.Path, byDefault) }
}

// phrases has the phrases for names in braces in the descriptions of arguments, where tags would be
// too long.
var phrases = strings.NewReplacer(
	"{path}", "absolute or in the working directory",
	"{every}", "default every folder",
	"{glob}", "*.go, or with a slash the path in the searched directory: src/**/*.{ts,tsx}",
	"{ignored}", "files git ignores; default leave_out",
	"{old}", "required unless there are edits; must occur exactly once, unless replace_all: include "+
		"lines around it",
	"{edits}", "several replacements, in order, instead of old_text and new_text",
	"{version}", "fail unless the file has this version, which read_file shows",
)

// definitions returns the table of all tools, those that only read first. Making the schemas takes
// a millisecond.
var definitions = sync.OnceValue(func() []Tool {
	most := limits{}.withDefaults()
	reads := Annotations{ReadOnly: true, Idempotent: true}
	writes := Annotations{Destructive: true, Idempotent: true}
	return []Tool{
		define(Tool{Name: "list_roots", Kind: KindRead, Annotations: reads,
			Description: "List the accessible folders. The first is the working directory.",
		}, func(struct{}) string { return "List the folders" }, (*service).listRoots),

		define(Tool{Name: "list_directory", Kind: KindRead, Annotations: reads,
			Description: "List one directory, with types and sizes.",
		}, func(in listDirectoryInput) string {
			return about("List", in.Path, "the working directory")
		}, (*service).list),

		define(Tool{Name: "directory_tree", Kind: KindRead, Annotations: reads,
			Description: "Show a directory as a tree, without links and empty directories. " +
				"Deeper ones show how many files they have.",
		}, func(in directoryTreeInput) string {
			return about("Show the tree of", in.Path, "the folders")
		}, (*service).tree),

		define(Tool{Name: "file_info", Kind: KindRead, Annotations: reads,
			Description: "Show type, size, time of change, permissions and link target.",
		}, aboutPath("Look up", "a file"), (*service).info),

		define(Tool{Name: "read_file", Kind: KindRead, Annotations: reads,
			Description: fmt.Sprintf("Read a text file, or lines of it: at most %d lines and %d "+
				"bytes at once.", most.lines, most.bytes),
		}, func(in readFileInput) string { return about("Read", in.Path, "a file") }, (*service).readFile),

		define(Tool{Name: "read_files", Kind: KindRead, Annotations: reads,
			Description: "Read several small text files at once.",
		}, func(in readFilesInput) string {
			return about("Read", strings.Join(in.Paths, ", "), "files")
		}, (*service).readSeveral),

		define(Tool{Name: "read_media", Kind: KindRead, Annotations: reads, HoldsFile: true,
			Description: "Look at an image, listen to a sound, or read a PDF.",
		}, aboutPath("Read", "a file"), (*service).readMedia),

		define(Tool{Name: "find_files", Kind: KindSearch, Annotations: reads,
			Description: "Find files by name, in every folder. Paths are relative to the folder.",
		}, func(in findFilesInput) string {
			return about("Find", in.Glob, "files") + within(in.Path)
		}, (*service).find),

		define(Tool{Name: "search", Kind: KindSearch, Annotations: reads, HoldsFile: true,
			Description: "Find lines of text files that match a regular expression, in every " +
				"folder.",
		}, func(in searchInput) string {
			return "Search for " + quoted(in.Pattern) + within(in.Path)
		}, (*service).search),

		define(Tool{Name: "find_skills", Kind: KindSearch, Annotations: reads,
			Description: "Find skills, which say how to do a task.",
		}, func(in findSkillsInput) string {
			return "Find skills for " + quoted(in.Query)
		}, (*service).findSkills),

		define(Tool{Name: "write_file", Kind: KindEdit, Annotations: writes, HoldsFile: true,
			Description: "Create a file, and directories above it, or replace its content. " +
				"edit_file changes a part.",
		}, func(in writeFileInput) string {
			return about("Write", in.Path, "a file")
		}, (*service).write),

		define(Tool{Name: "edit_file", Kind: KindEdit, Annotations: Annotations{Destructive: true},
			Description: "Replace exact text in a file: all replacements, or none. Indentation " +
				"and the ends of lines may differ; the result says so.", HoldsFile: true,
		}, func(in editFileInput) string { return about("Edit", in.Path, "a file") }, (*service).edit),

		define(Tool{Name: "create_directory", Kind: KindEdit,
			Annotations: Annotations{Idempotent: true},
			Description: "Create a directory, and those above it.",
		}, aboutPath("Create directory", "…"), planned((*service).planDirectory)),

		define(Tool{Name: "delete_file", Kind: KindDelete, Annotations: writes, HoldsFile: true,
			Description: "Delete a file, a link (not its target) or an empty directory.",
		}, aboutPath("Delete", "a file"), planned((*service).planDelete)),

		define(Tool{Name: "move_file", Kind: KindMove, Annotations: Annotations{Destructive: true},
			Description: "Move or rename a file, link or directory, also to another folder. " +
				"Nothing is replaced.",
		}, func(in moveFileInput) string {
			return about("Move", in.Path, "a file") + about(" to", in.To, "…")
		}, planned((*service).planMove)),
	}
})
