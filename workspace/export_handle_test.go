package workspace

import "os"

// HandleErrors is what the methods of a handle of dir say of a name.
func HandleErrors(dir, name string) map[string]error {
	h, err := openDirectory(dir)
	if err != nil {
		return map[string]error{"open": err}
	}
	defer h.Close()
	errs := map[string]error{}
	_, errs["into"] = h.into(name)
	_, errs["intoToList"] = h.intoToList(name)
	_, errs["look"] = h.look(name)
	_, errs["Lstat"] = h.Lstat(name)
	_, errs["Open"] = h.Open(name)
	_, errs["openRegular"] = h.openRegular(name)
	_, errs["create"] = h.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	_, errs["Readlink"] = h.Readlink(name)
	errs["Mkdir"] = h.Mkdir(name, 0o700)
	errs["Remove"] = h.Remove(name)
	errs["Rename from"] = h.Rename(name, "x")
	errs["Rename to"] = h.Rename("f", name)
	errs["Link from"] = h.Link(name, "x")
	errs["Link to"] = h.Link("f", name)
	return errs
}

// HandleRead reads from what has a name in dir, whatever it is.
func HandleRead(dir, name string) error {
	h, err := openDirectory(dir)
	if err != nil {
		return err
	}
	defer h.Close()
	f, err := h.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return err
}
