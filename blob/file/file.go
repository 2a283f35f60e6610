// Package file is a folder as a blob store: an object is a plain file, its key the path below the root.
// Any number of processes may use it at once, on one machine or over a shared file system. It knows
// nothing of what the objects mean, and leaves alone the files whose names are no keys.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"qj/blob"
)

// What a store holds is its owner's: code, logs and settings are nobody else's business.
const (
	folderMode = 0o700
	tempFolder = ".tmp" // begins with a dot, so it can never be a key
)

// Store is a blob.Store in a folder. Objects are 0600, folders 0700.
type Store struct {
	root  string
	sweep sync.Once
	link  func(oldname, newname string) error // os.Link, but for tests
}

var _ blob.Store = (*Store)(nil)

// Open returns the store at root. It creates nothing: a folder that is not there is an empty store, and
// the first Put makes it.
func Open(root string) (*Store, error) {
	if root == "" {
		return nil, errors.New("open store: no folder given")
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	info, err := os.Stat(abs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("open store: %s is not a folder", abs)
	}
	return &Store{root: abs, link: os.Link}, nil
}

// Root is the absolute path of the folder.
func (s *Store) Root() string { return s.root }

// Get opens the file. A put during the read does not disturb it: it makes a new file of the same name.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fmt.Errorf("get %s: offset %d is negative", key, offset)
	}
	if err := check(ctx, key); err != nil {
		return nil, fail("get", key, err)
	}
	f, err := os.Open(s.path(key))
	if err != nil {
		return nil, fail("get", key, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist // a folder of keys is not an object
	}
	if err != nil {
		f.Close()
		return nil, fail("get", key, err)
	}
	rest := max(0, info.Size()-offset)
	if length < 0 || length > rest {
		length = rest
	}
	return section{io.NewSectionReader(f, offset, length), f}, nil
}

type section struct {
	io.Reader
	io.Closer
}

// Stat describes the file.
func (s *Store) Stat(ctx context.Context, key string) (blob.Info, error) {
	if err := check(ctx, key); err != nil {
		return blob.Info{}, fail("stat", key, err)
	}
	info, err := os.Stat(s.path(key))
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return blob.Info{}, fail("stat", key, err)
	}
	return blob.Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil
}

// Delete removes the file and the folders that it leaves empty. A Put that races with it makes its
// folders again.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return fail("delete", key, err)
	}
	target := s.path(key)
	if info, err := os.Lstat(target); err == nil && info.IsDir() {
		return nil // os.Remove would take an empty folder for the object
	}
	if err := os.Remove(target); err != nil {
		if err = fail("delete", key, err); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for dir := filepath.Dir(target); dir != s.root; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // not empty, so neither are those above
		}
	}
	return nil
}

func (s *Store) path(key string) string { return filepath.Join(s.root, filepath.FromSlash(key)) }

func check(ctx context.Context, key string) error {
	if err := blob.ValidKey(key); err != nil {
		return err
	}
	return ctx.Err()
}

// fail names the verb and the key once, in place of the path that the system's error names.
func fail(verb, key string, err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist // `a/b` below an object `a`
	}
	return fmt.Errorf("%s %s: %w", verb, key, err)
}
