package file

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"syscall"

	"qj/blob"
)

// List walks only the folders that can hold a key it wants, and asks only for the sizes of files that it
// yields. What vanishes meanwhile was never there.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		folder := prefix[:strings.LastIndexByte(prefix, '/')+1]
		if folder != "" && blob.ValidKey(strings.TrimSuffix(folder, "/")) != nil {
			return // no key begins like this, and `..` must not leave the root
		}
		l := listing{store: s, prefix: prefix, after: after, yield: yield}
		l.walk(ctx, folder)
	}
}

type listing struct {
	store         *Store
	prefix, after string
	yield         func(blob.Info, error) bool
}

// node is a folder entry with the key it stands for. A folder's key ends in a slash, which puts the
// entries of one folder in the byte order of the keys below them: `a-b/x` comes before `a/x`.
type node struct {
	key   string
	entry fs.DirEntry
}

// walk lists one folder, whose key is "" or ends in a slash. It returns false when the listing is over.
func (l listing) walk(ctx context.Context, folder string) bool {
	nodes, err := l.read(ctx, folder)
	if err != nil {
		l.yield(blob.Info{}, fail("list", l.prefix, err))
		return false
	}
	for _, n := range nodes {
		more := false
		if n.entry.IsDir() {
			more = l.walk(ctx, n.key)
		} else {
			more = l.show(n)
		}
		if !more {
			return false
		}
	}
	return true
}

func (l listing) show(n node) bool {
	info, err := n.entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		l.yield(blob.Info{}, fail("list", n.key, err))
		return false
	}
	return l.yield(blob.Info{Key: n.key, Size: info.Size(), Modified: info.ModTime()}, nil)
}

// read returns what the listing wants of one folder, in key order.
func (l listing) read(ctx context.Context, folder string) ([]node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := readDir(l.store.path(folder))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var nodes []node
	for _, entry := range entries {
		if key := folder + entry.Name(); l.wantsFile(key, entry) {
			nodes = append(nodes, node{key, entry})
		} else if l.wantsFolder(key+"/", entry) {
			nodes = append(nodes, node{key + "/", entry})
		}
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.key, b.key) })
	return nodes, nil
}

// readDir is os.ReadDir without its sorting, whose order is not that of keys.
func readDir(path string) ([]fs.DirEntry, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

func (l listing) wantsFile(key string, entry fs.DirEntry) bool {
	return entry.Type().IsRegular() && strings.HasPrefix(key, l.prefix) && key > l.after && blob.ValidKey(key) == nil
}

// wantsFolder says whether keys below a folder can match.
func (l listing) wantsFolder(key string, entry fs.DirEntry) bool {
	return entry.IsDir() && entry.Name()[0] != '.' &&
		(strings.HasPrefix(key, l.prefix) || strings.HasPrefix(l.prefix, key)) &&
		(key > l.after || strings.HasPrefix(l.after, key))
}
