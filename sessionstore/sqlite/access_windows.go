package sqlite

import "os"

// mayWrite returns an error if dir is not a directory: only creating a file shows more.
func mayWrite(dir string) error {
	_, err := os.ReadDir(dir)
	return err
}
