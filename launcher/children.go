//go:build unix

package launcher

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// exit is how one child ended.
type exit struct {
	at     time.Time
	status syscall.WaitStatus
}

// code is the exit code as a shell gives it: 128+n for signal n.
func (e exit) code() int {
	if e.status.Signaled() {
		return 128 + int(e.status.Signal())
	}
	return e.status.ExitStatus()
}

// children starts processes and is the only one who waits for them. As a subreaper inherits orphans that
// it never started, it must wait for any child: no part of the launcher may use exec.Cmd.
type children struct {
	mu      sync.Mutex
	waiting map[int]chan exit
	idle    *sync.Cond // signalled when a child is started, so that reap sleeps while there are none
}

func newChildren() *children {
	c := &children{waiting: map[int]chan exit{}}
	c.idle = sync.NewCond(&c.mu)
	go c.reap()
	return c
}

// start runs a program and returns its pid and where its end will be told, once.
func (c *children) start(argv []string, path string, attr *os.ProcAttr) (int, <-chan exit, error) {
	c.mu.Lock() // held over the start: reap must not see the child's end before it is known
	defer c.mu.Unlock()
	p, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	pid := p.Pid
	if err := p.Release(); err != nil {
		return 0, nil, err
	}
	ended := make(chan exit, 1)
	c.waiting[pid] = ended
	c.idle.Broadcast()
	return pid, ended, nil
}

// reap waits for children as long as the process lives, and sleeps while there are none.
func (c *children) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil: // no child at all
			c.mu.Lock()
			for len(c.waiting) == 0 {
				c.idle.Wait()
			}
			c.mu.Unlock()
		default:
			c.mu.Lock()
			if ended, ours := c.waiting[pid]; ours {
				ended <- exit{at: time.Now(), status: status}
				delete(c.waiting, pid)
			}
			c.mu.Unlock()
		}
	}
}
