package text

// GlobChoices returns at least the number of globs without braces that a glob stands for, without
// counting far beyond most. A brace within a set, or behind a backslash, closes nothing.
func GlobChoices(glob string, most int) int {
	n, open := 1, []int{} // alternatives of each open brace
	for i := 0; i < len(glob) && n <= most; i++ {
		switch last := len(open) - 1; {
		case glob[i] == '\\':
			i++
		case glob[i] == '[':
			i += GlobSetEnd(glob[i:])
		case glob[i] == '{':
			open = append(open, 1)
		case glob[i] == ',' && last >= 0:
			open[last]++
		case glob[i] == '}' && last >= 0:
			n *= open[last]
			open = open[:last]
		}
	}
	return n
}

// GlobSetEnd returns the index of the "]" that closes the set at the beginning of glob, or of the
// last byte if none does.
func GlobSetEnd(glob string) int {
	for i := 1; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return len(glob) - 1
}
