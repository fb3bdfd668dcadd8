package workspace

import (
	"io/fs"
	"os"
	"time"
)

// chmod sets the permissions of the file or directory that path leads to, by its open handle. Of a
// special file, and of one with other names (C12), they are left alone.
func (w *Workspace) chmod(path string, perm fs.FileMode, o HardLinks) error {
	if perm&^fs.ModePerm != 0 {
		return failed("chmod", path, errSpecialMode)
	}
	return w.changeAttributes(path, o, func(f *os.File, _ arrival) error { return f.Chmod(perm) })
}

// chtimes sets the times of the file or directory that path leads to, as chmod does its permissions. A zero
// time is left as it is.
func (w *Workspace) chtimes(path string, accessed, modified time.Time, o HardLinks) error {
	return w.changeAttributes(path, o, func(f *os.File, end arrival) error {
		name := end.name
		if name == "" {
			name = "."
		}
		return end.dir.setTimes(f, name, accessed, modified)
	})
}

func (w *Workspace) changeAttributes(path string, o HardLinks, it func(*os.File, arrival) error) error {
	if err := w.begin(); err != nil {
		return err
	}
	defer w.end()
	a, err := parse(path)
	if err != nil {
		return err
	}
	return w.walk(a, followLast, func(end arrival) error {
		err := end.change(path, o, it)
		if err != nil {
			return failed("change", path, err)
		}
		return nil
	})
}

// change opens what was arrived at, and calls it if it may be changed in place.
func (end arrival) change(path string, o HardLinks, it func(*os.File, arrival) error) error {
	if !end.info.IsDir() && !end.info.Mode().IsRegular() {
		return unfit(path, end.info.Mode())
	}
	name := end.name
	if name == "" {
		name = "."
	}
	f, info, err := stepOnto(end.dir, name, end.info)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Mode().IsRegular() {
		if err := end.inPlace(path, f, info, o); err != nil {
			return err
		}
	}
	return it(f, end)
}
