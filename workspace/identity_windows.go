package workspace

import (
	"os"

	"golang.org/x/sys/windows"
)

// identity says which file it is.
func identity(f *os.File, _ os.FileInfo) []uint64 {
	about, err := handleInfo(f)
	if err != nil {
		return nil
	}
	return []uint64{uint64(about.VolumeSerialNumber), uint64(about.FileIndexHigh)<<32 | uint64(about.FileIndexLow)}
}

func handleInfo(f *os.File) (about windows.ByHandleFileInformation, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return about, err
	}
	controlErr := conn.Control(func(handle uintptr) {
		err = windows.GetFileInformationByHandle(windows.Handle(handle), &about)
	})
	if err == nil {
		err = controlErr
	}
	return about, err
}
