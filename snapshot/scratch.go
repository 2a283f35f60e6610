package snapshot

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// scratch is a temporary file without a name, where the system allows that: a process that is killed
// leaves none behind.
type scratch struct {
	*os.File
	named bool
}

func newScratch(dir string) (*scratch, error) {
	f, err := os.CreateTemp(dir, "qj-layer-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("make temporary file: %w", err)
	}
	return &scratch{File: f, named: os.Remove(f.Name()) != nil}, nil
}

func (s *scratch) Close() error {
	err := s.File.Close()
	if s.named {
		return os.Remove(s.Name())
	}
	return err
}

// spoolLimit is how much of a file's compressed content is kept in memory; more goes to disk.
const spoolLimit = 1 << 20

// spool keeps bytes that are written once and read once.
type spool struct {
	dir    string // of the temporary file
	memory bytes.Buffer
	disk   *scratch
	size   int64
}

func (s *spool) Write(p []byte) (int, error) {
	if s.disk == nil && s.memory.Len()+len(p) > spoolLimit {
		disk, err := newScratch(s.dir)
		if err != nil {
			return 0, err
		}
		s.disk = disk
	}
	var w io.Writer = &s.memory
	if s.disk != nil {
		w = s.disk
	}
	n, err := w.Write(p)
	s.size += int64(n)
	return n, err
}

// WriteTo writes all that was spooled.
func (s *spool) WriteTo(w io.Writer) (int64, error) {
	n, err := s.memory.WriteTo(w)
	if err != nil || s.disk == nil {
		return n, err
	}
	if _, err := s.disk.Seek(0, io.SeekStart); err != nil {
		return n, err
	}
	more, err := io.Copy(w, s.disk)
	return n + more, err
}

// Reset empties the spool. What it had on disk is gone.
func (s *spool) Reset() error {
	s.memory.Reset()
	s.size = 0
	disk := s.disk
	s.disk = nil
	if disk == nil {
		return nil
	}
	return disk.Close()
}
