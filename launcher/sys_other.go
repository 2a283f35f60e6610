//go:build unix && !linux

package launcher

import (
	"errors"
	"os"
	"syscall"

	"qj/process"
)

// childAttr puts a child into a process group of its own.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func widen(*os.File) {}

// move is for systems that can: here, bytes are read and written.
func move(*os.File, int64, *os.File) (int64, error) { return 0, errors.ErrUnsupported }

// family lists the living processes below this one.
func family() []int { return process.Descendants(os.Getpid()) }
