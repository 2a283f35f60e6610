package launcher

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// childAttr puts a child into a process group of its own and has the kernel kill it when the thread that
// started it ends: see lead, which locks its thread for that.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

const (
	pipeSize    = 1 << 20
	fSetPipeSz  = 1031 // F_SETPIPE_SZ
	spliceChunk = 1 << 20
)

// widen makes the pipe larger, so that a rank that writes in bursts seldom waits for us. The kernel may
// refuse when a user has many pipes: then it stays as it is.
func widen(pipe *os.File) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, fSetPipeSz, pipeSize) })
}

// move takes what the pipe holds into the file at offset and returns how much; 0 at the pipe's end. It is
// one system call that takes from the pipe only what it has written: being killed loses nothing.
func move(file *os.File, offset int64, pipe *os.File) (int64, error) {
	from, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int64
	var failed error
	err = from.Read(func(fd uintptr) bool {
		for {
			n, failed = syscall.Splice(int(fd), nil, int(file.Fd()), &offset, spliceChunk, spliceMove|spliceNonblock)
			if !errors.Is(failed, syscall.EINTR) {
				return !errors.Is(failed, syscall.EAGAIN)
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, fmt.Errorf("splice: %w", err)
	}
	return n, nil
}

const (
	spliceMove     = 1
	spliceNonblock = 2
)
