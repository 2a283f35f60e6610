//go:build unix && !linux

package process

import (
	"fmt"
	"os/exec"
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

// ps is the portable way to a process table; there is no /proc here.
func ps(args ...string) (string, error) {
	out, err := exec.Command("ps", args...).Output()
	if err != nil {
		return "", fmt.Errorf("run ps: %w", err)
	}
	return string(out), nil
}

func readStat(pid int) (stat, error) {
	out, err := ps("-o", "ppid=,stat=,lstart=", "-p", strconv.Itoa(pid))
	if err != nil {
		return stat{}, err
	}
	fields := strings.Fields(out)
	if len(fields) < 7 {
		return stat{}, fmt.Errorf("parse process status %q", out)
	}
	parent, err := strconv.Atoi(fields[0])
	if err != nil {
		return stat{}, fmt.Errorf("parse process status: %w", err)
	}
	start, err := time.Parse("Mon Jan _2 15:04:05 2006", strings.Join(fields[2:7], " "))
	if err != nil {
		return stat{}, fmt.Errorf("parse process status: %w", err)
	}
	return stat{parent: parent, start: uint64(start.Unix()), zombie: strings.HasPrefix(fields[1], "Z")}, nil
}

func bootID() (string, error) {
	out, err := exec.Command("sysctl", "-n", "kern.boottime").Output()
	return strings.TrimSpace(string(out)), err
}

func all() []int {
	out, err := ps("-A", "-o", "pid=")
	if err != nil {
		return nil
	}
	var pids []int
	for field := range strings.FieldsSeq(out) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// WithEnv lists nothing: no portable way leads to another process's environment.
func WithEnv(string, string) []int { return nil }

// BecomeSubreaper does nothing: orphans go to the first process of the machine.
func BecomeSubreaper() error { return nil }

func signalExactly(id ID, sig syscall.Signal) error { return syscall.Kill(id.PID, sig) }
