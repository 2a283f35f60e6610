package snapshot

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"

	"qj/blob"
)

// layers are the layers of a snapshot laid over each other.
type layers struct {
	open    []*scratch
	entries map[string]entry // by path, the topmost layer's
}

// entry is a file of a layer.
type entry struct {
	*zip.File
	layer string // key, for messages
}

func (s *layers) close() {
	for _, file := range s.open {
		file.Close()
	}
}

// add fetches a layer, checks it, and lays it over those before.
func (s *layers) add(ctx context.Context, store blob.Store, l layer, dir string) error {
	file, err := newScratch(dir)
	if err != nil {
		return err
	}
	s.open = append(s.open, file)
	if err := fetch(ctx, store, l, file); err != nil {
		return err
	}
	archive, err := zip.NewReader(file, l.Size)
	if err != nil {
		return fmt.Errorf("read %s: %w", l.key(), err)
	}
	archive.RegisterDecompressor(zip.Deflate, flate.NewReader)
	for _, path := range l.Deletes {
		delete(s.entries, path)
	}
	seen := make(map[string]bool, len(archive.File))
	for _, f := range archive.File {
		if err := checkEntry(&f.FileHeader); err != nil {
			return fmt.Errorf("read %s: %w", l.key(), err)
		}
		if seen[f.Name] {
			return fmt.Errorf("read %s: entry %q is there twice", l.key(), f.Name)
		}
		seen[f.Name] = true
		s.entries[f.Name] = entry{f, l.key()}
	}
	return nil
}

// extract writes all entries below the new folder dir and tells what it wrote. Nothing can be written
// elsewhere: dir is opened as a root, and links are made after all files, so that no file passes one.
func (s *layers) extract(ctx context.Context, dir string) ([]File, error) {
	paths := slices.Sorted(maps.Keys(s.entries))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := makeFolders(root, paths); err != nil {
		return nil, err
	}
	files := make([]File, len(paths))
	b := newBuffers()
	err = parallel(ctx, len(paths), func(ctx context.Context, i int) error {
		e := s.entries[paths[i]]
		files[i] = File{Path: e.Name, Mode: e.Mode(), ModTime: e.Modified, Size: int64(e.UncompressedSize64)}
		return e.describe(files[i].read(ctx, root, e, b))
	})
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.isLink() {
			if err := s.entries[f.Path].describe(root.Symlink(f.Link, f.Path)); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

func (e entry) describe(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("unpack %q of %s: %w", e.Name, e.layer, err)
}

func makeFolders(root *os.Root, paths []string) error {
	made := ""
	for _, p := range paths {
		dir := path.Dir(p)
		if dir == "." || dir == made {
			continue
		}
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		made = dir
	}
	return nil
}

// read unpacks a file below root, or takes in the target of a link.
func (f *File) read(ctx context.Context, root *os.Root, e entry, b *buffers) error {
	body, err := e.Open()
	if err != nil {
		return err
	}
	defer body.Close()
	if f.isLink() {
		var target strings.Builder
		if _, err := b.copy(ctx, &target, body); err != nil {
			return err
		}
		if f.Link, f.Size = target.String(), 0; !staysInside(f.Path, f.Link) {
			return fmt.Errorf("it links to %q, which is outside the code", f.Link)
		}
		return nil
	}
	out, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = b.copy(ctx, io.MultiWriter(out, sum), body)
	if err == nil {
		err = out.Chmod(f.Mode.Perm())
	}
	if closing := out.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return root.Chtimes(f.Path, f.ModTime, f.ModTime)
}
