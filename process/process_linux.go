package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type stat struct {
	parent int
	start  uint64
	zombie bool
}

// readStat parses /proc/<pid>/stat (proc_pid_stat(5)). The name in field 2 may hold spaces and
// parentheses: what follows the last one counts.
func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

func parseStat(b []byte) (stat, error) {
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	const state, ppid, threads, starttime = 0, 1, 17, 19 // fields 3, 4, 20 and 22
	if len(fields) <= starttime {
		return stat{}, fmt.Errorf("parse process status: %d fields", len(fields))
	}
	parent, err := strconv.Atoi(fields[ppid])
	if err != nil {
		return stat{}, fmt.Errorf("parse process status: %w", err)
	}
	start, err := strconv.ParseUint(fields[starttime], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("parse process status: %w", err)
	}
	// A process whose first thread has ended looks like a zombie, but its other threads live on.
	zombie := (fields[state] == "Z" || fields[state] == "X") && (fields[threads] == "1" || fields[threads] == "0")
	return stat{parent: parent, start: start, zombie: zombie}, nil
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

func all() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// WithEnv lists the living processes, other than the caller, that were started with NAME=value in their
// environment. Those of other users cannot be read and are not listed.
func WithEnv(name, value string) []int {
	want := []byte(name + "=" + value)
	var found []int
	for _, pid := range all() {
		environ, err := environOf(pid)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return bytes.Equal(v, want) }) {
			if s, err := readStat(pid); err == nil && !s.zombie {
				found = append(found, pid)
			}
		}
	}
	return found
}

// environOf reads a process's environment. In the middle of an exec it is empty for a moment, so what is
// empty is looked at again; a kernel thread, which has no program, has none for good.
func environOf(pid int) (environ []byte, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	for range 10 {
		environ, err = readOnce(dir + "/environ")
		if err != nil || len(environ) > 0 {
			break
		}
		if _, err := os.Readlink(dir + "/exe"); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return environ, err
}

// readOnce takes all of a file by one read: between two, an exec could take the rest away.
func readOnce(path string) ([]byte, error) {
	for size := 16 << 10; ; size *= 4 {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		buffer := make([]byte, size)
		n, err := f.Read(buffer)
		f.Close()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < size {
			return buffer[:n], nil
		}
	}
}

// BecomeSubreaper makes the caller the parent of every orphan among its descendants, so that none can
// leave the family by a double fork or a session of its own.
func BecomeSubreaper() error {
	const prSetChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("become subreaper: %w", errno)
	}
	return nil
}

// signalExactly holds the process by a pidfd (which os.FindProcess opens) while its identity is checked,
// so that the signal cannot reach another process that got the pid meanwhile.
func signalExactly(id ID, sig syscall.Signal) error {
	p, err := os.FindProcess(id.PID)
	if err != nil {
		return err
	}
	defer p.Release()
	if !id.Alive() {
		return nil
	}
	return p.Signal(sig)
}
