//go:build unix

package launcher

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	pipeSize = 1 << 20                // what a pipe holds at most
	lastLook = 100 * time.Millisecond // how long a pipe is empty that is done with, once its deadline is over
)

// copyFrom moves everything that comes through the pipe into the file, until the pipe's end, or until its
// read deadline and what it held by then. A file that takes no more (a full disk) never makes a rank wait:
// the bytes are dropped, and the stream says how many as soon as there is room. lose hears of the first.
func (st *stream) copyFrom(pipe *os.File, lose func(error)) {
	c := &copying{stream: st, pipe: pipe, lose: lose}
	if info, err := st.file.Stat(); err == nil { // it is open, so this does not fail
		c.offset = info.Size()
	}
	budget, late, idle := int64(pipeSize), false, false
	for budget > 0 {
		n, err := c.next()
		switch {
		case err == nil:
			idle = false
			if late {
				budget -= n
			}
			st.poke()
		case errors.Is(err, os.ErrDeadlineExceeded) && !idle:
			// Somebody out of reach holds the other end. What is in the pipe already is still to be kept.
			late, idle = true, true
			pipe.SetReadDeadline(time.Now().Add(lastLook))
		default:
			budget = 0
		}
	}
	if c.gap > 0 {
		c.confess()
	}
}

// copying is one copyFrom.
type copying struct {
	*stream
	pipe   *os.File
	lose   func(error)
	offset int64 // the file's end
	gap    int64 // bytes dropped since the last one that was kept
	cause  error // of the gap
	buffer []byte
}

// next keeps what the pipe holds now and returns how much it was; io.EOF at the pipe's end.
func (c *copying) next() (int64, error) {
	if c.gap == 0 {
		n, err := move(c.file, c.offset, c.pipe)
		if err == nil && n == 0 {
			return 0, io.EOF
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			c.offset += n
			return n, err
		}
	}
	// The file system has no room, or does not take bytes that way. They have to leave the pipe all the same.
	if c.buffer == nil {
		c.buffer = make([]byte, 64<<10)
	}
	n, err := c.pipe.Read(c.buffer)
	if n > 0 {
		c.keep(c.buffer[:n])
	}
	return int64(n), err
}

func (c *copying) keep(p []byte) {
	if c.gap > 0 && !c.confess() {
		c.drop(len(p), c.cause)
		return
	}
	n, err := c.file.WriteAt(p, c.offset)
	c.offset += int64(n)
	if err != nil {
		c.drop(len(p)-n, err)
	}
}

func (c *copying) drop(n int, cause error) {
	if c.lost == 0 {
		c.lose(fmt.Errorf("keep output of %s: %w", c.id, cause))
	}
	c.lost += int64(n)
	c.gap, c.cause = c.gap+int64(n), cause
}

// confess writes into the file what is missing, and returns false if there is no room for that either.
func (c *copying) confess() bool {
	n, err := c.file.WriteAt(fmt.Appendf(nil, "\nqj: %d bytes of output are missing here: %v\n", c.gap, c.cause), c.offset)
	c.offset += int64(n)
	if err != nil {
		return false
	}
	c.gap = 0
	return true
}
