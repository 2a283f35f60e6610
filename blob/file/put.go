package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"qj/blob"
)

const (
	// leftoverAge is when a temporary file must belong to a process that was killed: a living one writes
	// to it, which keeps it young.
	leftoverAge = 24 * time.Hour

	// placeTries bounds how often a put makes its folder again after a racing Delete removed it.
	placeTries = 100
)

// Put writes a temporary file and gives it its name in one step, so that neither a reader nor a crash
// ever meets half of an object.
func (s *Store) Put(ctx context.Context, key string, body io.ReadSeeker, mode blob.Mode) error {
	if err := check(ctx, key); err != nil {
		return fail("put", key, err)
	}
	s.sweep.Do(s.removeLeftovers)
	target := s.path(key)
	if mode == blob.IfAbsent {
		if _, err := os.Lstat(target); err == nil {
			return fail("put", key, fs.ErrExist) // before a large body is copied in vain
		}
	}
	temp, err := s.writeTemp(ctx, body)
	if err != nil {
		return fail("put", key, err)
	}
	if err := s.place(ctx, temp, target, mode); err != nil {
		os.Remove(temp)
		return fail("put", key, err)
	}
	return nil
}

// writeTemp copies body to a new file and leaves nothing behind when it fails. It syncs before the file
// gets its name: otherwise a power cut could keep the name and lose the bytes.
func (s *Store) writeTemp(ctx context.Context, body io.ReadSeeker) (_ string, err error) {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("rewind body: %w", err)
	}
	folder := filepath.Join(s.root, tempFolder)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(folder, "put-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := io.Copy(f, bodyReader{ctx, body}); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// place gives temp its name, and makes the folder again when a racing Delete takes it away.
func (s *Store) place(ctx context.Context, temp, target string, mode blob.Mode) error {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := os.MkdirAll(filepath.Dir(target), folderMode)
		vanished := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) // it was there, then not
		if err == nil {
			err = s.move(temp, target, mode)
			vanished = errors.Is(err, fs.ErrNotExist)
		}
		if !vanished || try == placeTries {
			return err
		}
	}
}

func (s *Store) move(temp, target string, mode blob.Mode) error {
	if mode == blob.Replace {
		return os.Rename(temp, target)
	}
	err := s.link(temp, target) // fails if the name is taken
	if noLinks(err) {
		return claim(temp, target)
	}
	if err != nil {
		return err
	}
	os.Remove(temp) // failing leaves work for a later sweep
	return nil
}

// noLinks tells a file system without hard links, as many mounted object stores are.
func noLinks(err error) bool {
	for _, no := range []error{syscall.EPERM, syscall.ENOSYS, syscall.ENOTSUP, errors.ErrUnsupported} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// claim takes the name with an empty file, which succeeds once, and then replaces that by temp. It is
// second best: for a moment a reader finds an empty object, and a crash in that moment leaves it.
func claim(temp, target string) error {
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), os.Rename(temp, target)); err != nil {
		os.Remove(target)
		return err
	}
	return nil
}

// removeLeftovers clears what killed processes left. It is housekeeping: an error is no reason to fail
// a put.
func (s *Store) removeLeftovers() {
	folder := filepath.Join(s.root, tempFolder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > leftoverAge {
			os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
}

// bodyReader stops a copy when its context ends, and tells errors of the body from those of the store.
type bodyReader struct {
	ctx  context.Context
	body io.Reader
}

func (r bodyReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read body: %w", err)
	}
	return n, err
}
