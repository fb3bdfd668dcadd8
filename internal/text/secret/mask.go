package secret

import "github.com/acp-agent/acp-agent/internal/text"

// assignment matches a name, what follows a name before its value, and the value.
var assignment = text.Pattern(`([A-Za-z0-9_-]+)("?'?[ \t]*[=:][ \t]*["']?)` +
	`((?:(?:Bearer|Basic|Token)[ \t]+)?[^\s"',;&]+)`)

// userInfo matches the user name and password of a URL.
var userInfo = text.Pattern(`://[^/\s@:"']*:[^/\s@"']+@`)

// shaped matches keys that are known by their form.
var shaped = text.Pattern(`\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|` +
	`github_pat_[A-Za-z0-9_]{20,}|AKIA[A-Z0-9]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|` +
	`AIza[A-Za-z0-9_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)`)

// Mask returns text without what looks like a secret: the value behind a name such as API_TOKEN,
// passwords in URLs, and keys of a known form. It finds only what looks like one.
func Mask(text string) string {
	text = userInfo().ReplaceAllString(text, "://"+mark+"@")
	text = shaped().ReplaceAllString(text, mark)
	return assignment().ReplaceAllStringFunc(text, func(found string) string {
		parts := assignment().FindStringSubmatch(found)
		if !IsCredential(parts[1]) {
			return found
		}
		return parts[1] + parts[2] + mark
	})
}
