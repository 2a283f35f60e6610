package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"qj/blob"
)

// Copy puts a snapshot that lies in one store into another, which may have it already, by itself or in
// part. The manifest in the result is the one that `to` has, and may differ from the given one: the first
// manifest under an id wins. Layers pass through tmpDir ("" is the system's folder).
func Copy(ctx context.Context, from, to blob.Store, id, manifest, tmpDir string) (Snapshot, error) {
	found, err := find(ctx, to, id)
	if err == nil {
		return found, nil
	}
	if !replaceable(err) {
		return Snapshot{}, err
	}
	m, _, err := getManifest(ctx, from, id, manifest)
	if err != nil {
		return Snapshot{}, err
	}
	p := publication{store: to}
	for _, l := range m.Layers {
		if err := p.copyLayer(ctx, from, l, tmpDir); err != nil {
			return Snapshot{}, err
		}
	}
	return p.manifest(ctx, m)
}

func (p *publication) copyLayer(ctx context.Context, from blob.Store, l layer, tmpDir string) error {
	if _, sound, err := holds(ctx, p.store, l); err != nil || sound {
		return err
	}
	file, err := newScratch(tmpDir)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := fetch(ctx, from, l, file); err != nil {
		return err
	}
	return p.layer(ctx, l, file)
}

// fetch writes a layer to w and refuses any bytes but the layer's own.
func fetch(ctx context.Context, store blob.Store, l layer, w io.Writer) error {
	body, err := store.Get(ctx, l.key(), 0, -1)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	n, err := newBuffers().copy(ctx, io.MultiWriter(w, sum), io.LimitReader(body, l.Size+1))
	if err != nil {
		return fmt.Errorf("get %s: %w", l.key(), err)
	}
	if n != l.Size || hex.EncodeToString(sum.Sum(nil)) != l.SHA256 {
		return fmt.Errorf("get %s: %w: the content is not what the name says", l.key(), ErrMismatch)
	}
	return nil
}
