package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"qj/blob"
)

// Upload puts a tree into the store and says what it became. It hashes the files first: a tree that the
// store already has, from anybody, sends nothing. Else it packs a layer in tmpDir ("" is the system's
// folder) and puts that, then the manifest, so that a manifest in a store has its layers. t.Files tell
// afterwards exactly what the snapshot holds, even if files changed since Scan. progress may be nil.
func Upload(ctx context.Context, store blob.Store, t *Tree, tmpDir string, progress func(Progress)) (Snapshot, error) {
	if err := t.hash(ctx, newMeter(progress, Hashing, t.Bytes())); err != nil {
		return Snapshot{}, fmt.Errorf("hash code: %w", err)
	}
	found, err := find(ctx, store, identify(t.Files))
	if err == nil {
		return found, nil
	}
	if !replaceable(err) {
		return Snapshot{}, err
	}
	p := publication{store: store}
	m := manifest{Format: format, Layers: []layer{}}
	if len(t.Files) > 0 {
		file, l, err := t.pack(ctx, tmpDir, newMeter(progress, Packing, t.Bytes()))
		if err != nil {
			return Snapshot{}, err
		}
		defer file.Close()
		if err := p.layer(ctx, l, metered{file, newMeter(progress, Sending, l.Size)}); err != nil {
			return Snapshot{}, err
		}
		m.Layers = append(m.Layers, l)
	}
	m.Snapshot, m.Files, m.Bytes = identify(t.Files), len(t.Files), t.Bytes()
	return p.manifest(ctx, m)
}

// replaceable says whether an error of find means that a manifest may be written. One that is damaged
// serves no run, so replacing it takes nothing from anybody.
func replaceable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged)
}

// publication puts the objects of one snapshot and counts what it sends.
type publication struct {
	store blob.Store
	sent  int64
}

// layer puts a layer unless the store has it. An object of another size under its name is not it, however
// it came there, and is replaced.
func (p *publication) layer(ctx context.Context, l layer, body io.ReadSeeker) error {
	present, sound, err := holds(ctx, p.store, l)
	if err != nil || sound {
		return err
	}
	mode := blob.IfAbsent
	if present {
		mode = blob.Replace
	}
	err = p.store.Put(ctx, l.key(), body, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody else was faster with the same bytes
	}
	if err == nil {
		p.sent += l.Size
	}
	return err
}

// manifest puts m unless the store has a usable one under its id: the first wins.
func (p *publication) manifest(ctx context.Context, m manifest) (Snapshot, error) {
	body, err := m.encode()
	if err != nil {
		return Snapshot{}, err
	}
	mode := blob.IfAbsent
	for {
		err = blob.PutBytes(ctx, p.store, manifestKey(m.Snapshot), body, mode)
		if err == nil {
			s := m.describe(body)
			s.Sent = p.sent + int64(len(body))
			return s, nil
		}
		if !errors.Is(err, fs.ErrExist) || mode == blob.Replace {
			return Snapshot{}, err
		}
		found, err := find(ctx, p.store, m.Snapshot)
		if err == nil {
			found.Sent = p.sent
			return found, nil
		}
		if !replaceable(err) {
			return Snapshot{}, err
		}
		mode = blob.Replace
	}
}
