//go:build unix && !linux

package launcher

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// childAttr puts a child into a process group of its own.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func widen(*os.File) {}

// move takes what the pipe holds into the file at offset and returns how much; 0 at the pipe's end.
func move(file *os.File, offset int64, pipe *os.File) (int64, error) {
	buffer := make([]byte, 64<<10)
	n, err := pipe.Read(buffer)
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	written, err := file.WriteAt(buffer[:n], offset)
	return int64(written), err
}
