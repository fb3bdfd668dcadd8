package mcproots

// PathOn is the path in a URI as Windows, or as other systems, read it.
func PathOn(uri, system string) (string, Reason) {
	on := posix
	if system == "windows" {
		on = windows
	}
	return pathOf(uri, on)
}
