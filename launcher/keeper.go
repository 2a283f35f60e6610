//go:build unix

package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"qj/logsync"
)

// The lead hands a copy of the reading end of every rank's pipe to the guard over a socket, one message
// of fixed size each. As long as one of the two lives, what a rank wrote is not lost. The socket's end
// also tells each that the other is gone.

const keepMessage = 128 // bytes: the stream's name, padded with NUL

// pipeKeeper is the guard's side.
type pipeKeeper struct {
	conn  *net.UnixConn
	pipes map[logsync.Stream]*os.File
	done  chan struct{}
}

// newPipeKeeper returns the guard's side, which collects from now on, and the file to give to the lead.
func newPipeKeeper() (*pipeKeeper, *os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make guard socket: %w", err)
	}
	syscall.CloseOnExec(pair[0])
	syscall.CloseOnExec(pair[1])
	theirs := os.NewFile(uintptr(pair[1]), "guard socket")
	conn, err := unixConn(os.NewFile(uintptr(pair[0]), "guard socket"))
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	k := &pipeKeeper{conn: conn, pipes: map[logsync.Stream]*os.File{}, done: make(chan struct{})}
	go k.collect()
	return k, theirs, nil
}

func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("open guard socket: %w", err)
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errors.New("open guard socket: not a unix socket")
	}
	return unix, nil
}

// collect takes pipes until the lead is gone.
func (k *pipeKeeper) collect() {
	defer close(k.done)
	for {
		message, rights := make([]byte, keepMessage), make([]byte, syscall.CmsgSpace(4))
		n, nr, _, _, err := k.conn.ReadMsgUnix(message, rights)
		if err != nil || n != keepMessage {
			return
		}
		id, err := logsync.ParseStream(string(bytes.TrimRight(message, "\x00")))
		if err != nil {
			continue
		}
		if pipe := received(rights[:nr]); pipe != nil {
			k.pipes[id] = pipe
		}
	}
}

func received(rights []byte) *os.File {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil { // so that reads can have a deadline
		return nil
	}
	return os.NewFile(uintptr(fds[0]), "pipe")
}

// collected returns the pipes once the lead is gone.
func (k *pipeKeeper) collected() map[logsync.Stream]*os.File {
	<-k.done
	k.conn.Close()
	return k.pipes
}

// guardLink is the lead's side.
type guardLink struct {
	conn *net.UnixConn
	gone chan struct{} // closed when the guard is gone
}

// newGuardLink opens the socket that the guard left, and keeps the lock that it left from the ranks.
func newGuardLink() (*guardLink, error) {
	syscall.CloseOnExec(fdLock)
	conn, err := unixConn(os.NewFile(fdSocket, "guard socket"))
	if err != nil {
		return nil, err
	}
	l := &guardLink{conn: conn, gone: make(chan struct{})}
	go func() {
		defer close(l.gone)
		_, _ = conn.Read(make([]byte, 1)) // the guard says nothing: this returns at its end
	}()
	return l, nil
}

// keep gives the guard a copy of the pipe. A guard that is gone cannot take it, and is noticed elsewhere.
func (l *guardLink) keep(id logsync.Stream, pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	message := make([]byte, keepMessage)
	copy(message, id.String())
	_ = raw.Control(func(fd uintptr) { _, _, _ = l.conn.WriteMsgUnix(message, syscall.UnixRights(int(fd)), nil) })
}
