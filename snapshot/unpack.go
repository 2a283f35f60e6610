package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"qj/blob"
)

// Unpack makes dir the folder that the snapshot id was taken of, or leaves no dir. The manifest must have
// the given hash, each layer the one that the manifest names, and the unpacked tree that of id.
//
// The work is done in <dir>.partial, ends with a rename to dir, and <dir>.done marks that it ended: then
// Unpack returns at once. A dir without the mark is made anew, if it is one that Unpack left behind; what
// somebody else put there is an error. One process at a time may unpack to a dir.
func Unpack(ctx context.Context, store blob.Store, id, manifest, dir string) error {
	if err := unpack(ctx, store, id, manifest, filepath.Clean(dir)); err != nil {
		return fmt.Errorf("unpack code: %w", err)
	}
	return nil
}

func unpack(ctx context.Context, store blob.Store, id, pin, dir string) error {
	partial, done := dir+".partial", dir+".done"
	mark := id + " " + pin + "\n"
	if finished, err := isFinished(dir, done, mark); err != nil || finished {
		return err
	}
	if err := clearUnfinished(dir, partial, done); err != nil {
		return err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	tree := filepath.Join(partial, "tree")
	if err := unpackTree(ctx, store, id, pin, partial, tree); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Rename(tree, dir); err != nil {
		return err
	}
	if err := writeMark(partial, done, mark); err != nil {
		return err
	}
	return os.RemoveAll(partial) // last: its presence says that dir is ours to remove
}

// isFinished says whether dir is there and marked as this very snapshot.
func isFinished(dir, done, mark string) (bool, error) {
	got, err := os.ReadFile(done)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if string(got) != mark {
		return false, fmt.Errorf("%s holds another snapshot", dir)
	}
	return true, nil
}

// clearUnfinished removes what an earlier Unpack left that did not come to its end, and nothing else.
func clearUnfinished(dir, partial, done string) error {
	if _, err := os.Lstat(partial); err == nil {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	} else if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there and was not unpacked by qj: %w", dir, err)
	}
	return errors.Join(os.RemoveAll(partial), os.RemoveAll(done))
}

// writeMark puts the mark under its name whole or not at all.
func writeMark(partial, done, mark string) error {
	temporary := filepath.Join(partial, "done")
	if err := os.WriteFile(temporary, []byte(mark), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, done)
}

// unpackTree makes the folder tree. Layers lie in the folder beside while they are read.
func unpackTree(ctx context.Context, store blob.Store, id, pin, beside, tree string) error {
	m, _, err := getManifest(ctx, store, id, pin)
	if err != nil {
		return err
	}
	content := &layers{entries: map[string]entry{}}
	defer content.close()
	for _, l := range m.Layers {
		if err := content.add(ctx, store, l, beside); err != nil {
			return err
		}
	}
	files, err := content.extract(ctx, tree)
	if err != nil {
		return err
	}
	if got := identify(files); got != id {
		return fmt.Errorf("%s: %w: its layers make the tree %s", manifestKey(id), ErrMismatch, got)
	}
	return nil
}
