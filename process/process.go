//go:build unix

// Package process tells processes of this machine apart for good, finds whole families of them, and
// ends them. A pid alone is never trusted: the kernel reuses pids, and a reboot starts over. It knows
// nothing of runs.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// ID names one process of one boot of one machine.
type ID struct {
	Host  string `json:"host"` // a folder with such names may be shared by machines
	PID   int    `json:"pid"`
	Boot  string `json:"boot"`  // the kernel's boot id
	Start uint64 `json:"start"` // clock ticks since boot
}

// Pair names the two processes that run a node.
type Pair struct {
	Guard ID `json:"guard"`
	Lead  ID `json:"lead,omitzero"`
}

// Self is the identity of the calling process.
func Self() (ID, error) { return Of(os.Getpid()) }

// Of is the identity of a process that runs now; fs.ErrNotExist if none does.
func Of(pid int) (ID, error) {
	boot, err := bootID()
	if err != nil {
		return ID{}, fmt.Errorf("read boot id: %w", err)
	}
	stat, err := readStat(pid)
	if err != nil {
		return ID{}, fmt.Errorf("look up process %d: %w", pid, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return ID{}, fmt.Errorf("look up process %d: %w", pid, err)
	}
	return ID{Host: host, PID: pid, Boot: boot, Start: stat.start}, nil
}

// Here says whether the process is, or was, one of this machine. Of another machine's nothing else can be
// told from here.
func (id ID) Here() bool {
	host, err := os.Hostname()
	return err == nil && host == id.Host
}

// Alive says whether this very process still runs; a zombie does not.
func (id ID) Alive() bool {
	boot, err := bootID()
	if err != nil || boot != id.Boot || id.PID <= 0 || !id.Here() {
		return false
	}
	stat, err := readStat(id.PID)
	return err == nil && stat.start == id.Start && !stat.zombie
}

// SameBoot says whether the machine has not been rebooted since the process was named.
func (id ID) SameBoot() bool {
	boot, err := bootID()
	return err == nil && boot == id.Boot
}

// Signal sends sig to this very process. It does nothing if the process is gone.
func (id ID) Signal(sig syscall.Signal) error {
	if !id.Alive() {
		return nil
	}
	err := signalExactly(id, sig)
	if err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", id.PID, err)
	}
	return nil
}

// Descendants lists the living children, grandchildren and so on of pid, except those under one of the
// pids in but. The members of a family that was orphaned belong to the nearest subreaper above them.
func Descendants(pid int, but ...int) []int {
	children := map[int][]int{}
	for _, p := range all() {
		if stat, err := readStat(p); err == nil && !stat.zombie {
			children[stat.parent] = append(children[stat.parent], p)
		}
	}
	var family []int
	queue := []int{pid}
	for len(queue) > 0 {
		for _, child := range children[queue[0]] {
			if !slices.Contains(but, child) {
				family = append(family, child)
				queue = append(queue, child)
			}
		}
		queue = queue[1:]
	}
	return family
}

// End signals every process that find lists until it lists none: TERM first, KILL after grace, or as soon
// as ctx ends. New ones that appear meanwhile are signalled too. It gives up five seconds after KILL (a
// process in uninterruptible sleep cannot be ended) and returns what is left.
func End(ctx context.Context, grace time.Duration, find func() []int) []int {
	const giveUp = 5 * time.Second
	told := map[int]bool{}
	kill := time.NewTimer(grace)
	defer kill.Stop()
	var killedAt time.Time
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	done := ctx.Done()
	for {
		left := find()
		if len(left) == 0 || !killedAt.IsZero() && time.Since(killedAt) > giveUp {
			return left
		}
		for _, pid := range left {
			switch {
			case !killedAt.IsZero():
				_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is fine
			case !told[pid]:
				told[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM)
				_ = syscall.Kill(pid, syscall.SIGCONT) // a stopped process would never see the TERM
			}
		}
		select {
		case <-tick.C:
			continue
		case <-kill.C:
		case <-done:
			done = nil // it stays closed, and the looks are to stay apart
		}
		if killedAt.IsZero() {
			killedAt = time.Now()
		}
	}
}
