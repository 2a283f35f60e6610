package file_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"qj/blob"
	"qj/test/smalldisk"
)

// tmpfs is an empty file system of the given size.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	smalldisk.Mount(t, dir, size)
	return dir
}

func TestFullDisk(t *testing.T) {
	if !smalldisk.Inside(t) {
		return
	}
	root := tmpfs(t, "256k")
	store := open(t, root)
	put(t, store, "a/old", "old")
	large := make([]byte, 1<<20)
	for _, key := range []string{"a/old", "a/new", "b/c/new"} {
		for _, mode := range []blob.Mode{blob.Replace, blob.IfAbsent} {
			err := blob.PutBytes(t.Context(), store, key, large, mode)
			if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, fs.ErrExist) {
				t.Errorf("put %s on a full disk: %v, want ENOSPC", key, err)
			}
		}
	}
	if keys := list(t, store); len(keys) != 1 || keys[0] != "a/old" {
		t.Errorf("the store holds %q after the failed puts, want a/old", keys)
	}
	wantNoLeftovers(t, root)
	put(t, store, "a/new", strings.Repeat("x", 100<<10)) // only fits if the failed puts gave their room back
}

func TestReadOnlyRoot(t *testing.T) {
	if !smalldisk.Inside(t) {
		return
	}
	root := tmpfs(t, "256k")
	put(t, open(t, root), "code/x.zip", "layer")
	if err := syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	store := open(t, root)
	if body, err := blob.ReadAll(t.Context(), store, "code/x.zip", 100); string(body) != "layer" || err != nil {
		t.Errorf("read %q, %v", body, err)
	}
	if keys := list(t, store); len(keys) != 1 {
		t.Errorf("list = %q", keys)
	}
	if err := blob.PutBytes(t.Context(), store, "code/y.zip", nil, blob.Replace); !errors.Is(err, syscall.EROFS) {
		t.Errorf("put: %v, want EROFS", err)
	}
	if err := store.Delete(t.Context(), "code/x.zip"); !errors.Is(err, syscall.EROFS) {
		t.Errorf("delete: %v, want EROFS", err)
	}
}

func wantNoLeftovers(t *testing.T, root string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, ".tmp"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if len(entries) != 0 {
		t.Errorf("temporary files were left: %v", entries)
	}
}
