//go:build unix

package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"qj/blob"
	"qj/logsync"
)

// streams keeps the output of a node: every stream in a local file of its own, which a shipper sends to
// the store. The files are the truth; the store follows.
type streams struct {
	dir   string     // <work>/streams
	store blob.Store // one that does not repeat puts by itself: the shipper has to know
	run   string     // "runs/<id>" in the store

	// trouble, if not nil, hears of each request that the store failed, and with nil when it works again.
	trouble func(error)

	mu   sync.Mutex
	open []*stream
}

// stream is one of them.
type stream struct {
	id    logsync.Stream
	file  *os.File
	eager atomic.Bool   // ship within a second
	grown chan struct{} // poked when the file grew
	ended chan struct{} // closed when it will not grow any more
	final chan shipped  // how the shipping ended, once
	lost  int64         // bytes that the file could not take; who copies writes it, who finishes reads it after
}

type shipped struct {
	size int64
	err  error
}

func streamPath(dir string, id logsync.Stream) string {
	return filepath.Join(dir, strconv.Itoa(id.Attempt), id.Name)
}

// start opens the stream's file, which may hold output already, and begins to ship it. ctx ends the
// shipping, complete or not.
func (s *streams) start(ctx context.Context, id logsync.Stream, eager bool) (*stream, error) {
	path := streamPath(s.dir, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}
	st := &stream{
		id: id, file: file,
		grown: make(chan struct{}, 1), ended: make(chan struct{}), final: make(chan shipped, 1),
	}
	st.eager.Store(eager)
	shipper := &logsync.Shipper{Store: s.store, Folder: s.run, Stream: id, Path: path, Eager: st.eager.Load, Notify: s.trouble}
	go func() {
		n, err := shipper.Run(ctx, st.grown, st.ended)
		st.final <- shipped{n, err}
	}()
	s.mu.Lock()
	s.open = append(s.open, st)
	s.mu.Unlock()
	return st, nil
}

// onDisk lists the streams that have a file.
func (s *streams) onDisk() ([]logsync.Stream, error) {
	var ids []logsync.Stream
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // none was ever started
		}
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		id, err := logsync.ParseStream(relative)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// poke tells the shipper that the file grew.
func (st *stream) poke() {
	select {
	case st.grown <- struct{}{}:
	default:
	}
}

// Write appends a message of the launcher itself.
func (st *stream) Write(p []byte) (int, error) {
	if _, err := st.file.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	n, err := st.file.Write(p)
	st.poke()
	return n, err
}

// finish declares all streams ended, waits until they are in the store or ctx ends, and returns each one's
// length. spent says that the store has all that the local files hold, complete that this is all there was.
func (s *streams) finish(ctx context.Context) (lengths map[string]int64, complete, spent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lengths, complete, spent = map[string]int64{}, true, true
	for _, st := range s.open {
		if info, err := st.file.Stat(); err == nil {
			lengths[st.id.String()] = info.Size()
		}
		st.file.Close() // so that the length stays what it is
		close(st.ended)
	}
	for _, st := range s.open {
		select {
		case end := <-st.final:
			spent = spent && end.err == nil && end.size == lengths[st.id.String()]
		case <-ctx.Done():
			spent = false
		}
		complete = complete && st.lost == 0
	}
	s.open = nil
	return lengths, complete && spent, spent
}

// lastLines returns the end of a stream for people to read.
func (s *streams) lastLines(id logsync.Stream, n int) []string {
	text, err := logsync.TailLines(streamPath(s.dir, id), n)
	if err != nil {
		return nil
	}
	return splitLines(text)
}

// readAtMost reads r to its end, and fails when there is more than limit.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("more than %d bytes of output", limit)
	}
	return b, err
}
