package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"qj/blob"
)

// format is the version of the manifest that this code writes, and the highest that it reads.
const format = 1

const maxManifest = 16 << 20

// manifest is the object that says which layers make a snapshot. A later layer's files replace those of
// earlier ones; each layer lists its own files.
type manifest struct {
	Format   int     `json:"format"`
	Snapshot string  `json:"snapshot"`
	Files    int     `json:"files"`
	Bytes    int64   `json:"bytes"`
	Layers   []layer `json:"layers"`
}

// layer names an immutable zip in the store.
type layer struct {
	SHA256  string   `json:"sha256"`
	Size    int64    `json:"size"`
	Deletes []string `json:"deletes,omitempty"` // paths of earlier layers that are gone
}

func (l layer) key() string { return "code/" + l.SHA256 + ".zip" }

func manifestKey(id string) string { return "code/" + id + ".json" }

func (m manifest) encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", "  ")
	return append(body, '\n'), err
}

func (m manifest) describe(body []byte) Snapshot {
	return Snapshot{ID: m.Snapshot, Manifest: hashOf(body), Files: m.Files, Bytes: m.Bytes}
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// errDamaged marks a manifest, or a snapshot, that no reader could use.
var errDamaged = errors.New("damaged")

// getManifest reads the manifest of a snapshot as it lies in the store. With a pin, the hash of the
// manifest that a run recorded, any other one is refused.
func getManifest(ctx context.Context, store blob.Store, id, pin string) (manifest, []byte, error) {
	if !isHash(id) {
		return manifest{}, nil, fmt.Errorf("%q is not the id of a snapshot", id)
	}
	key := manifestKey(id)
	body, err := blob.ReadAll(ctx, store, key, maxManifest)
	if err != nil {
		return manifest{}, nil, err
	}
	if got := hashOf(body); pin != "" && got != pin {
		return manifest{}, nil, fmt.Errorf("read %s: %w: it is %s, the run wants %s", key, ErrMismatch, got, pin)
	}
	m, err := decodeManifest(body)
	if err == nil && m.Snapshot != id {
		err = fmt.Errorf("it is of snapshot %q: %w", m.Snapshot, errDamaged)
	}
	if err != nil {
		return manifest{}, nil, fmt.Errorf("read %s: %w", key, err)
	}
	return m, body, nil
}

// decodeManifest reads the format first: what a newer qj wrote is not damage.
func decodeManifest(body []byte) (manifest, error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return manifest{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if head.Format < 1 {
		return manifest{}, fmt.Errorf("it has no format: %w", errDamaged)
	}
	if head.Format > format {
		return manifest{}, fmt.Errorf("format %d is newer than %d: update qj", head.Format, format)
	}
	var m manifest
	if err := json.Unmarshal(body, &m); err != nil {
		return manifest{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	for _, l := range m.Layers {
		if !isHash(l.SHA256) || l.Size < 0 {
			return manifest{}, fmt.Errorf("layer %q of %d bytes: %w", l.SHA256, l.Size, errDamaged)
		}
	}
	return m, nil
}

// holds says whether the store has an object of the layer's size under its name.
func holds(ctx context.Context, store blob.Store, l layer) (present, sound bool, err error) {
	info, err := store.Stat(ctx, l.key())
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return err == nil, err == nil && info.Size == l.Size, err
}

// find returns the snapshot if the store has all of it: fs.ErrNotExist if there is no manifest, errDamaged
// if there is one that cannot be used.
func find(ctx context.Context, store blob.Store, id string) (Snapshot, error) {
	m, body, err := getManifest(ctx, store, id, "")
	if err != nil {
		return Snapshot{}, err
	}
	for _, l := range m.Layers {
		if _, sound, err := holds(ctx, store, l); err != nil {
			return Snapshot{}, err
		} else if !sound {
			return Snapshot{}, fmt.Errorf("%s is missing or cut short: %w", l.key(), errDamaged)
		}
	}
	return m.describe(body), nil
}

func isHash(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size && hex.EncodeToString(raw) == s
}
