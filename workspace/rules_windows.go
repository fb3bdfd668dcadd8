package workspace

type native = drives
