package snapshot

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"qj/test/smalldisk"
)

// smallDisk is a disk of one MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	smalldisk.Mount(t, dir, "1m")
	return dir
}

func noise(size int) string {
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{2}).Read(content)
	return string(content)
}

func TestFullDiskWhilePacking(t *testing.T) {
	if !smalldisk.Inside(t) {
		return
	}
	root := plant(t, map[string]string{"a": "1", "big": noise(3 << 20), "more": noise(1 << 19)})
	disk, store := smallDisk(t), newMemory()
	_, err := Upload(t.Context(), store, scan(t, root), disk, nil)
	wantError(t, err, "pack code", "no space left")
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v is no ENOSPC", err)
	}
	empty(t, disk)
	if puts, _ := store.Count(); puts > 0 {
		t.Errorf("%d objects were put", puts)
	}
	upload(t, store, root) // with room, it works
}

func TestFullDiskWhileUnpacking(t *testing.T) {
	if !smalldisk.Inside(t) {
		return
	}
	store := newMemory()
	s := upload(t, store, plant(t, map[string]string{"a": strings.Repeat("packs well ", 1<<20), "b": "1"}))
	disk := smallDisk(t)
	dir := filepath.Join(disk, "code")
	wantError(t, Unpack(t.Context(), store, s.ID, s.Manifest, dir), "unpack code", `"a"`, "no space left")
	empty(t, disk)
}

func TestChangeWhileReading(t *testing.T) {
	tests := []struct {
		name    string
		changes int
		says    string // "" = no error
	}{
		{"left alone", 0, ""},
		{"changed once", 1, ""},
		{"changed again and again", 2, "keeps changing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := plant(t, map[string]string{"log": "0"})
			full := filepath.Join(root, "log")
			reads, got := 0, ""
			_, err := readStable(full, func(r io.Reader) error {
				content, err := io.ReadAll(r)
				got = string(content)
				if reads++; err == nil && reads <= test.changes {
					write(t, root, "log", strings.Repeat("x", reads+1))
				}
				return err
			})
			if test.says != "" {
				wantError(t, err, full, test.says)
				return
			}
			if want, _ := os.ReadFile(full); err != nil || got != string(want) || reads != test.changes+1 {
				t.Errorf("read %q in %d reads, %v; want %q", got, reads, err, want)
			}
		})
	}
}

// A tree that changes between hashing and packing becomes the snapshot of what was packed.
func TestChangeBetweenHashingAndPacking(t *testing.T) {
	root := plant(t, map[string]string{"a": "1", "b": "2"})
	tree, store := scan(t, root), newMemory()
	s, err := Upload(t.Context(), store, tree, t.TempDir(), func(p Progress) {
		if p.Phase == Hashing && p.Done == p.Total {
			write(t, root, "b", "changed")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := upload(t, newMemory(), root).ID; s.ID != want || tree.Files[1].Size != int64(len("changed")) {
		t.Errorf("snapshot %s with %+v, want %s", s.ID, tree.Files[1], want)
	}
	dir := filepath.Join(t.TempDir(), "code")
	if err := Unpack(t.Context(), store, s.ID, s.Manifest, dir); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, map[string]string{"a": "1", "b": "changed"})
}

func TestUnreadable(t *testing.T) {
	root := plant(t, map[string]string{"pkg/secret": "1"})
	full := filepath.Join(root, "pkg", "secret")
	if err := os.Chmod(full, 0); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		f := File{Path: "pkg/secret"}
		wantError(t, f.hash(t.Context(), root, newBuffers()), full, "permission denied")
	})
}

func TestGone(t *testing.T) {
	root := plant(t, map[string]string{"a": "1", "b": "2"})
	tree := scan(t, root)
	unlink(t, root, "b")
	_, err := Upload(t.Context(), newMemory(), tree, t.TempDir(), nil)
	wantError(t, err, filepath.Join(root, "b"), "no such file")
}

// asNobody calls f on a thread without root's right to read everything; others need no help for that.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
	}
	f()
}

func TestCancel(t *testing.T) {
	root := plant(t, map[string]string{"a": noise(4 << 20)})
	tmp, ctx := t.TempDir(), cancelSoon(t)
	for _, phase := range []Phase{Hashing, Packing, Sending} {
		inner, cancel := context.WithCancel(ctx)
		store := newMemory()
		_, err := Upload(inner, store, scan(t, root), tmp, func(p Progress) {
			if p.Phase == phase {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled in %s: %v", phase, err)
		}
		if puts, _ := store.Count(); puts > 0 {
			t.Errorf("canceled in %s: %d objects were put", phase, puts)
		}
		empty(t, tmp)
	}
}
