package workspace

// Real is d's real path now, by the same means as an opened root's; d itself where it is not a
// directory that can be opened. It is a key to compare by (clause A17), never a path to open.
func Real(d Dir) Dir {
	root, err := openDirectory(d.path)
	if err != nil {
		return d
	}
	defer root.Close()
	path, err := realPathOf(root, d.path)
	if err != nil {
		return d
	}
	real, err := ParseDir(path)
	if err != nil {
		return d
	}
	return real
}
