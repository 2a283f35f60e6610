//go:build unix

package launcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"qj/jobspec"
)

// A machine's slots are lock files, and so is its queue: the kernel drops the lock of a run that dies, so
// nothing has to be cleaned up after it and nobody has to be alive to hand anything on.

// claim waits until the run stands first in the queue and holds what it needs. It returns the names of
// the slots (GPU indices, or numbers) and the open files whose locks hold them. waiting is told what the
// run waits for whenever that changes.
func claim(ctx context.Context, s jobspec.Slots, run jobspec.RunID, list func(context.Context) ([]slot, error), waiting func(string)) ([]string, []*os.File, error) {
	if s.Need == 0 {
		return nil, nil, nil // it is in nobody's way
	}
	queue := filepath.Join(s.Dir, "queue")
	if err := os.MkdirAll(queue, 0o700); err != nil {
		return nil, nil, fmt.Errorf("queue for slots: %w", err)
	}
	ticket, err := takeTicket(filepath.Join(queue, s.Ticket))
	if err != nil {
		return nil, nil, fmt.Errorf("queue for slots: %w", err)
	}
	defer func() {
		os.Remove(ticket.Name())
		ticket.Close()
	}()
	for {
		if err := awaitTurn(ctx, queue, s, waiting); err != nil {
			return nil, nil, err
		}
		ids, files, err := gather(ctx, s, run, list, waiting)
		if !errors.Is(err, errOvertaken) {
			return ids, files, err
		}
	}
}

// errOvertaken is why gathering ends when a run that was submitted earlier comes later: both would keep what
// the other one waits for.
var errOvertaken = errors.New("an earlier run came")

// takeTicket creates and locks a file of the queue. Who finds it unlocked takes it for a dead run's and
// removes it, so after the lock the name must still lead to the locked file.
func takeTicket(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				continue // somebody looks whether we are alive
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if sameFile(f, path) {
			return f, nil
		}
		f.Close()
	}
}

func sameFile(f *os.File, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}

// awaitTurn returns when every earlier ticket is gone. It sleeps in the kernel on the lock of the one
// just before its own.
func awaitTurn(ctx context.Context, queue string, s jobspec.Slots, waiting func(string)) error {
	for {
		entries, err := os.ReadDir(queue) // sorted by name, which begins with the time of submission
		if err != nil {
			return fmt.Errorf("queue for slots: %w", err)
		}
		ahead := before(entries, s.Ticket)
		if ahead == 0 {
			return nil
		}
		waiting(fmt.Sprintf("waits for %s, %s in the queue", what(s, s.Need), ordinal(ahead+1)))
		if err := awaitEnd(ctx, filepath.Join(queue, entries[ahead-1].Name())); err != nil {
			return fmt.Errorf("queue for slots: %w", err)
		}
	}
}

// before counts the tickets that are served before ours.
func before(queue []fs.DirEntry, ticket string) int {
	ahead := slices.IndexFunc(queue, func(e fs.DirEntry) bool { return e.Name() >= ticket })
	if ahead < 0 {
		return len(queue)
	}
	return ahead
}

// awaitEnd returns when nobody holds the ticket any more, and removes it if its owner died. When ctx ends
// first, the goroutine stays in the kernel until the process ends, which it is about to.
func awaitEnd(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	locked := make(chan error, 1)
	go func() {
		locked <- syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if sameFile(f, path) {
			os.Remove(path)
		}
		f.Close()
	}()
	select {
	case err := <-locked:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slot is one thing to hold: a GPU, or a number.
type slot struct {
	name string // "gpu-3", "slot-0"
	id   string // "3"
	busy string // why it cannot be had although nobody holds its lock
}

func numbered(count int) []slot {
	slots := make([]slot, count)
	for i := range slots {
		slots[i] = slot{name: "slot-" + strconv.Itoa(i), id: strconv.Itoa(i)}
	}
	return slots
}

// gather takes slots as they come free. Only the first of the queue gathers, so what it holds already
// is never in the way of somebody who could use it sooner.
func gather(ctx context.Context, s jobspec.Slots, run jobspec.RunID, list func(context.Context) ([]slot, error), waiting func(string)) ([]string, []*os.File, error) {
	held := map[string]*os.File{}
	release := func() {
		for _, f := range held {
			f.Close()
		}
	}
	for {
		slots, err := list(ctx)
		if err != nil {
			release()
			return nil, nil, err
		}
		if s.Need > len(slots) {
			release()
			return nil, nil, fmt.Errorf("needs %s, this machine has %d", what(s, s.Need), len(slots))
		}
		var users []string
		for _, slot := range slots {
			if len(held) == s.Need {
				break
			}
			if held[slot.id] != nil {
				continue
			}
			f, user, err := hold(filepath.Join(s.Dir, slot.name), run)
			if err != nil {
				release()
				return nil, nil, fmt.Errorf("take %s: %w", slot.name, err)
			}
			switch {
			case f == nil:
				users = append(users, user)
			case slot.busy != "":
				f.Close()
				users = append(users, slot.busy)
			default:
				held[slot.id] = f
			}
		}
		if len(held) == s.Need {
			return claimed(slots, held)
		}
		slices.Sort(users)
		waiting(fmt.Sprintf("waits for %s, %d free, the others are used by %s",
			what(s, s.Need), len(held), strings.Join(slices.Compact(users), ", ")))
		select {
		case <-time.After(200 * time.Millisecond): // a lock has no event that one could wait for beside ctx
		case <-ctx.Done():
			release()
			return nil, nil, fmt.Errorf("queue for slots: %w", context.Cause(ctx))
		}
		if queue, err := os.ReadDir(filepath.Join(s.Dir, "queue")); err == nil && before(queue, s.Ticket) > 0 {
			release()
			return nil, nil, errOvertaken
		}
	}
}

func claimed(slots []slot, held map[string]*os.File) (ids []string, files []*os.File, err error) {
	for _, slot := range slots { // in the machine's order
		if f := held[slot.id]; f != nil {
			ids = append(ids, slot.id)
			files = append(files, f)
		}
	}
	return ids, files, nil
}

// hold takes a slot's lock and notes in the file who has it. With a nil file, user tells who else does.
func hold(path string, run jobspec.RunID) (f *os.File, user string, err error) {
	f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, "", err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteString(string(run))
		}
		if err != nil {
			f.Close()
			return nil, "", err
		}
		return f, "", nil
	}
	defer f.Close()
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, "", fmt.Errorf("lock %s: %w", path, err)
	}
	note := make([]byte, 64)
	n, err := f.ReadAt(note, 0)
	id, parseErr := jobspec.ParseRunID(string(note[:n]))
	if parseErr != nil { // its owner has not written yet
		return nil, "another run", nil
	}
	return nil, id.Suffix(), nil
}

func what(s jobspec.Slots, n int) string {
	unit := "slot"
	if s.GPUs {
		unit = "GPU"
	}
	if n != 1 {
		unit += "s"
	}
	return strconv.Itoa(n) + " " + unit
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return strconv.Itoa(n) + suffix
}
