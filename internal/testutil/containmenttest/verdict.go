//go:build linux || darwin

package containmenttest

import "strings"

// Operations returns the operations of a workspace that every attempt is made with.
func Operations() []string {
	return strings.Fields("read text list search stat lstat readlink fs-read write write-new fs-create mkdir rename-from rename-to remove")
}

// Verdicts returns the possible outcomes of an operation: "ok", "any", "refused" for any failure, or a kind of failure.
func Verdicts() []string {
	return strings.Fields("ok any refused outside denied protected special missing exists invalid permission isdir notdir " +
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

// classes returns what a path can be: for each class the verdict by operation, and by "" for all others.
func classes() map[string]map[string]string {
	return map[string]map[string]string{
		"outside": {"": "outside"},
		"denied":  {"": "denied"},
		"invalid": {"": "invalid"},
		"toolong": {"": "toolong"},
		"notdir":  {"": "notdir"},
		"refused": {"": "refused"},
		"safe":    {"": "any"},
		"file":    verdictsFor("ok", "notdir", "list search", "exists", "write-new mkdir rename-to", "invalid", "readlink"),
		"read-only": verdictsFor("ok", "notdir", "list search", "exists", "write-new mkdir rename-to", "invalid", "readlink",
			"permission", "write fs-create"),
		"dir": verdictsFor("ok", "isdir", "read text write write-new fs-create", "exists", "mkdir rename-to", "invalid", "readlink",
			"notempty", "remove"),
		"root": verdictsFor("ok", "isdir", "read text write write-new fs-create", "exists", "mkdir", "invalid", "readlink",
			"protected", "rename-from rename-to remove"),
		"missing": verdictsFor("missing", "ok", "write write-new fs-create mkdir rename-to"),
		"nowhere": verdictsFor("missing"),
		"special": verdictsFor("special", "notdir", "list search", "ok", "stat lstat rename-from remove", "exists", "mkdir rename-to",
			"invalid", "readlink"),
		// A link that leads outside is a name inside, which may be moved and removed.
		"link-out":    verdictsFor("outside", "ok", "lstat readlink rename-from remove", "exists", "mkdir rename-to"),
		"link-out/":   verdictsFor("outside", "notdir", "rename-from remove", "exists", "mkdir rename-to"),
		"link-denied": verdictsFor("denied", "ok", "lstat readlink rename-from remove", "exists", "mkdir rename-to"),
		"loop":        verdictsFor("loop", "ok", "lstat readlink rename-from remove", "exists", "mkdir rename-to"),
	}
}

// verdictsFor returns the verdict for most operations, and those of pairs: a verdict and the operations it is for.
func verdictsFor(most string, pairs ...string) map[string]string {
	all := map[string]string{"": most}
	for i := 0; i < len(pairs); i += 2 {
		for op := range strings.FieldsSeq(pairs[i+1]) {
			all[op] = pairs[i]
		}
	}
	return all
}
