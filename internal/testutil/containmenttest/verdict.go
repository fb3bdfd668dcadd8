//go:build linux || darwin

package containmenttest

import "strings"

// Operations returns what the verdicts of an attempt are for: the operations of a workspace.
func Operations() []string {
	return strings.Fields("read text list search stat lstat readlink fs-read write write-new open create append truncate fs-create " +
		"chmod mkdir mkdirall rename-from rename-to copy-from remove removeall")
}

// Verdicts returns what may come of an operation: "ok", "any", "refused" for any failure, or a kind of failure.
func Verdicts() []string {
	return strings.Fields("ok any refused outside denied protected special linked missing exists invalid permission isdir notdir " +
		"notempty loop toolong")
}

// Verdict is what is to come of the attempt by an operation.
func (a Attempt) Verdict(operation string) string {
	if v, ok := a.except[operation]; ok {
		return v
	}
	of := classes()[a.class]
	if v, ok := of[operation]; ok {
		return v
	}
	return of[""]
}

// classes are what a path can be: the verdict for it by operation, and by "" for all others.
func classes() map[string]map[string]string {
	return map[string]map[string]string{
		"outside": {"": "outside"},
		"denied":  {"": "denied"},
		"invalid": {"": "invalid"},
		"toolong": {"": "toolong"},
		"notdir":  {"": "notdir"},
		"refused": {"": "refused"},
		"safe":    {"": "any"},
		"file":    verdictsFor("ok", "notdir", "list search mkdirall", "exists", "write-new create mkdir", "invalid", "readlink"),
		"linked": verdictsFor("ok", "notdir", "list search mkdirall", "exists", "write-new create mkdir", "invalid", "readlink",
			"linked", "open append truncate fs-create chmod"),
		"read-only": verdictsFor("ok", "notdir", "list search mkdirall", "exists", "write-new create mkdir", "invalid", "readlink",
			"permission", "write open append truncate fs-create rename-to"),
		"dir": verdictsFor("ok", "isdir", "read text write write-new open append truncate fs-create rename-to", "exists", "create mkdir",
			"invalid", "readlink", "notempty", "remove"),
		"root": verdictsFor("ok", "isdir", "read text write write-new open append truncate fs-create", "exists", "create mkdir",
			"invalid", "readlink", "protected", "rename-from rename-to copy-from remove removeall"),
		"missing": verdictsFor("missing", "ok", "write write-new create append fs-create mkdir mkdirall rename-to removeall"),
		"nowhere": verdictsFor("missing", "ok", "mkdirall removeall"),
		"special": verdictsFor("special", "notdir", "list search mkdirall", "ok", "stat lstat rename-from remove removeall",
			"exists", "create mkdir", "invalid", "readlink"),
		// A link that leads outside is a name inside, which may be moved and removed.
		"link-out":  verdictsFor("outside", "ok", "lstat readlink rename-from rename-to copy-from remove removeall", "exists", "create mkdir"),
		"link-out/": verdictsFor("outside", "notdir", "rename-from rename-to copy-from remove removeall", "exists", "create mkdir"),
		"link-denied": verdictsFor("denied", "ok", "lstat readlink rename-from rename-to copy-from remove removeall",
			"exists", "create mkdir"),
		"loop": verdictsFor("loop", "ok", "lstat readlink rename-from rename-to copy-from remove removeall", "exists", "create mkdir"),
	}
}

// verdictsFor are the verdict for most operations, and pairs of one and the operations that it is for.
func verdictsFor(most string, pairs ...string) map[string]string {
	all := map[string]string{"": most}
	for i := 0; i < len(pairs); i += 2 {
		for op := range strings.FieldsSeq(pairs[i+1]) {
			all[op] = pairs[i]
		}
	}
	return all
}
