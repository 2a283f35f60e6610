// Package snapshot turns a folder of code into immutable, content-addressed zip layers in a blob store,
// and back into a folder on a node. It knows which files git would take, how a layer and a manifest look,
// and how to check them. It knows no run, no cluster, no configuration and no terminal; what belongs to
// those and must stay behind is told to it as plain paths.
package snapshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"
)

// ErrMismatch is wrapped when an object of the store is not what its name or its pin promises.
var ErrMismatch = errors.New("hash mismatch")

// Tree is what a snapshot of a folder holds.
type Tree struct {
	Root  string // absolute, links resolved
	Files []File // sorted by path
	Left  []Left // what was left out, a folder as one entry
}

// File is one file or symbolic link. Folders exist only as parts of paths, as in git.
type File struct {
	Path    string      `json:"path"` // slash-separated, relative to the root
	Size    int64       `json:"size"`
	Mode    fs.FileMode `json:"mode"`
	ModTime time.Time   `json:"mtime"`
	Link    string      `json:"link,omitempty"`   // target of a symbolic link
	SHA256  string      `json:"sha256,omitempty"` // of the content; empty for a link and before Upload
}

// Left is a path that is not part of the snapshot, and the rule that says so.
type Left struct {
	Path string
	Dir  bool
	Rule string
}

// Bytes is the size of all files.
func (t *Tree) Bytes() int64 {
	var n int64
	for _, f := range t.Files {
		n += f.Size
	}
	return n
}

func (f File) isLink() bool { return f.Mode&fs.ModeSymlink != 0 }

// executable is the one permission that makes another snapshot: git's rule, the owner's bit.
func (f File) executable() bool { return f.Mode&0o100 != 0 }

// identify hashes what makes a tree: paths, executable bits, link targets and content, never mtime, umask
// or layering. Fields end at NUL, which none of them can hold, so no two trees write the same bytes.
func identify(files []File) string {
	sorted := slices.SortedFunc(slices.Values(files), byPath)
	h := sha256.New()
	for _, f := range sorted {
		kind, content := "file", f.SHA256
		switch {
		case f.isLink():
			kind, content = "link", f.Link
		case f.executable():
			kind = "exec"
		}
		io.WriteString(h, kind+"\x00"+f.Path+"\x00"+content+"\x00")
	}
	return hex.EncodeToString(h.Sum(nil))
}

func byPath(a, b File) int { return cmp.Compare(a.Path, b.Path) }

// Snapshot says where a tree lies in a store.
type Snapshot struct {
	ID       string // hash over the tree
	Manifest string // SHA-256 of the manifest object, which pins the layers
	Files    int
	Bytes    int64
	Sent     int64 // bytes put into the store by this call; 0 when it had everything
}
