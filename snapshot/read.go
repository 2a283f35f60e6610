package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const bufferSize = 128 << 10

// buffers lends out copy buffers, so that a tree of many small files does not make one each.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

// copy moves r to w until ctx ends.
func (b *buffers) copy(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	buffer := b.pool.Get().(*[bufferSize]byte)
	defer b.pool.Put(buffer)
	return io.CopyBuffer(w, cancelable{ctx, r}, buffer[:])
}

// readStable gives the content of a regular file to use. If the file changed meanwhile, use gets it once
// more, from its start; if it then changed again, the file is in somebody's hands and that is the error.
func readStable(name string, use func(r io.Reader) error) (fs.FileInfo, error) {
	for range 2 {
		before, after, err := readOnce(name, use)
		if err != nil {
			return nil, err
		}
		if before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) {
			return after, nil
		}
	}
	return nil, fmt.Errorf("read %s: the file keeps changing while it is read", name)
}

func readOnce(name string, use func(r io.Reader) error) (before, after fs.FileInfo, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if before, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("read %s: it is no longer a regular file", name)
	}
	if err := use(f); err != nil {
		return nil, nil, err
	}
	after, err = f.Stat()
	return before, after, err
}

// hash fills in the content hashes, and takes size, mode and time from the very read that was hashed.
func (t *Tree) hash(ctx context.Context, m *meter) error {
	b := newBuffers()
	return parallel(ctx, len(t.Files), func(ctx context.Context, i int) error {
		if err := t.Files[i].hash(ctx, t.Root, b); err != nil {
			return err
		}
		m.add(t.Files[i].Size)
		return nil
	})
}

func (f *File) hash(ctx context.Context, root string, b *buffers) error {
	if f.isLink() {
		return nil
	}
	h := sha256.New()
	info, err := readStable(f.in(root), func(r io.Reader) error {
		h.Reset()
		_, err := b.copy(ctx, h, r)
		return err
	})
	if err != nil {
		return err
	}
	f.saw(info, h.Sum(nil))
	return nil
}

func (f *File) saw(info fs.FileInfo, sum []byte) {
	f.Size, f.Mode, f.ModTime, f.SHA256 = info.Size(), info.Mode(), info.ModTime(), hex.EncodeToString(sum)
}

func (f *File) in(root string) string { return filepath.Join(root, filepath.FromSlash(f.Path)) }
