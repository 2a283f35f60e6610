package snapshot

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
)

// level makes the layer of a source tree a few percent larger than zip -6 does, in a fraction of the time.
const level = 6

// packer compresses files on all processors and writes them, in order, as one zip.
type packer struct {
	tree    *Tree
	buffers *buffers
	presses sync.Pool // of *press
}

// press holds what compressing one file needs.
type press struct {
	spool   spool
	deflate *flate.Writer
}

// packed is a file that is ready to be written.
type packed struct {
	index int
	file  File
	entry *zip.FileHeader
	press *press
}

// pack writes the files of t as a layer to a temporary file in dir. It reads them again and updates t:
// what t says afterwards is what the layer holds.
func (t *Tree) pack(ctx context.Context, dir string, m *meter) (*scratch, layer, error) {
	out, err := newScratch(dir)
	if err != nil {
		return nil, layer{}, err
	}
	p := &packer{tree: t, buffers: newBuffers()}
	p.presses.New = func() any {
		deflate, err := flate.NewWriter(nil, level)
		if err != nil {
			panic(err) // only for a level that does not exist
		}
		return &press{spool: spool{dir: dir}, deflate: deflate}
	}
	l, err := p.run(ctx, out, m)
	if err != nil {
		out.Close()
		return nil, layer{}, fmt.Errorf("pack code: %w", err)
	}
	return out, l, nil
}

func (p *packer) run(ctx context.Context, out io.Writer, m *meter) (layer, error) {
	sum := sha256.New()
	count := &counter{}
	archive := zip.NewWriter(io.MultiWriter(out, sum, count))
	write := func(done packed) error {
		p.tree.Files[done.index] = done.file
		w, err := archive.CreateRaw(done.entry)
		if err == nil {
			_, err = done.press.spool.WriteTo(w)
		}
		m.add(done.file.Size)
		return errors.Join(err, p.release(done))
	}
	if err := inOrder(ctx, len(p.tree.Files), p.compress, write, func(done packed) { _ = p.release(done) }); err != nil {
		return layer{}, err
	}
	if err := archive.Close(); err != nil {
		return layer{}, err
	}
	return layer{SHA256: hex.EncodeToString(sum.Sum(nil)), Size: count.n}, nil
}

// compress reads and deflates one file. Its hash is taken from the same bytes.
func (p *packer) compress(ctx context.Context, i int) (packed, error) {
	done := packed{index: i, file: p.tree.Files[i], press: p.presses.Get().(*press)}
	f := &done.file
	var got content
	var err error
	if f.isLink() {
		got, err = done.press.fill(ctx, strings.NewReader(f.Link), p.buffers)
	} else {
		var info fs.FileInfo
		info, err = readStable(f.in(p.tree.Root), func(r io.Reader) error {
			var err error
			got, err = done.press.fill(ctx, r, p.buffers)
			return err
		})
		if err == nil {
			f.saw(info, got.sum)
		}
	}
	if err != nil {
		return done, err
	}
	done.entry = newEntry(*f)
	done.entry.CRC32, done.entry.UncompressedSize64 = got.crc, uint64(got.size)
	done.entry.CompressedSize64 = uint64(done.press.spool.size)
	return done, nil
}

// release makes the press of a file ready for another one.
func (p *packer) release(done packed) error {
	err := done.press.spool.Reset()
	p.presses.Put(done.press)
	return err
}

// content is what was read of a file.
type content struct {
	sum  []byte // SHA-256
	crc  uint32
	size int64
}

// fill deflates r into the emptied spool.
func (p *press) fill(ctx context.Context, r io.Reader, b *buffers) (content, error) {
	if err := p.spool.Reset(); err != nil {
		return content{}, err
	}
	p.deflate.Reset(&p.spool)
	sum, crc := sha256.New(), crc32.NewIEEE()
	n, err := b.copy(ctx, io.MultiWriter(p.deflate, sum, crc), r)
	if err == nil {
		err = p.deflate.Close()
	}
	return content{sum.Sum(nil), crc.Sum32(), n}, err
}

// counter counts what is written to it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
