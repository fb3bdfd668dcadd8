package workspace

type native = windows
