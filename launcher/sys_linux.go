package launcher

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"qj/process"
)

// childAttr puts a child into a process group of its own and has the kernel kill it when the thread that
// started it ends: see lead, which locks its thread for that.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

const fSetPipeSz = 1031 // F_SETPIPE_SZ

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
			n, failed = syscall.Splice(int(fd), nil, int(file.Fd()), &offset, pipeSize, spliceMove|spliceNonblock)
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

// family lists the living processes below this one. A look at the process table can miss one whose parent
// ends meanwhile; that a subreaper has no child left, so no descendant, is the kernel's word.
func family() []int {
	for range 100 {
		if childless() {
			return nil
		}
		if left := process.Descendants(os.Getpid()); len(left) > 0 {
			return left
		}
		time.Sleep(time.Millisecond) // zombies that are being reaped, or one that was missed
	}
	return nil
}

// childless says whether this process has no child, not even a zombie.
func childless() bool {
	const pAll = 0
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pAll, 0, 0, syscall.WEXITED|syscall.WNOHANG|syscall.WNOWAIT, 0, 0)
	return errno == syscall.ECHILD
}
