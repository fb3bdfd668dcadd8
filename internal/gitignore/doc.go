// Package ignore says what git ignores, by git's own rules.
//
// It reads no files. A caller that walks a tree parses the bytes of each .gitignore
// with [Parse] and keeps one [Matcher] for each directory: [NewMatcher] for the top one,
// [Matcher.Enter] for a directory inside it, which inherits and extends. A Matcher
// judges the entries of its own directory, one name at a time, so that deciding is a few
// comparisons and never a walk back to the top.
//
//	top := ignore.NewMatcher(ignore.Parse(gitignore), ignore.Parse(infoExclude))
//	if top.Match("build", ignore.Directory) == ignore.Ignored {
//		// do not descend
//	}
//	sub := top.Enter("src", ignore.Parse(srcGitignore))
//	sub.Match("main.o", ignore.File)
//
// The rules are those of gitignore(5) as git runs them, the undocumented part included: of
// the rules of one file the last that matches decides; a deeper file goes before a
// shallower one, and every .gitignore before .git/info/exclude; what lies in an ignored
// directory is ignored and cannot be taken back; "**" between slashes crosses directories, and so it
// does behind a literal beginning ("/lib**/x"), although the manual says otherwise.
//
// Three things that git also looks at are left out. The user's global file
// (core.excludesFile) is not read, because it lies outside of what a workspace may read; a
// caller that has its bytes gives them to NewMatcher as the last source. Names are
// compared byte by byte, as with core.ignoreCase off. And a file that is tracked although a
// rule names it is Ignored here, since the index is not looked at.
package gitignore
