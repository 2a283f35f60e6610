package snapshot

import (
	"context"
	"slices"
	"strings"
)

// Change is one path that differs between two states of a tree.
type Change struct {
	Path string
	Kind ChangeKind
}

// ChangeKind says how a path differs.
type ChangeKind string

// The kinds of changes.
const (
	Added    ChangeKind = "added"
	Modified ChangeKind = "modified"
	Removed  ChangeKind = "removed"
)

// Changes tells, sorted by path, what would make a snapshot of the tree another one than that of before,
// which holds the Files of a tree as Upload left them. Content is read only where size, mode or time
// moved.
func Changes(ctx context.Context, now *Tree, before []File) ([]Change, error) {
	old := make(map[string]File, len(before))
	for _, f := range before {
		old[f.Path] = f
	}
	var changes []Change
	b := newBuffers()
	for _, f := range now.Files {
		was, known := old[f.Path]
		delete(old, f.Path)
		if !known {
			changes = append(changes, Change{f.Path, Added})
			continue
		}
		same, err := f.sameAs(ctx, was, now.Root, b)
		if err != nil {
			return nil, err
		}
		if !same {
			changes = append(changes, Change{f.Path, Modified})
		}
	}
	for path := range old {
		changes = append(changes, Change{path, Removed})
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

func (f File) sameAs(ctx context.Context, was File, root string, b *buffers) (bool, error) {
	switch {
	case f.Mode.Type() != was.Mode.Type() || f.Size != was.Size || f.Link != was.Link:
		return false, nil
	case f.isLink():
		return true, nil
	case f.executable() != was.executable():
		return false, nil
	case f.Mode == was.Mode && f.ModTime.Equal(was.ModTime):
		return true, nil
	}
	err := f.hash(ctx, root, b)
	return f.SHA256 == was.SHA256, err
}
