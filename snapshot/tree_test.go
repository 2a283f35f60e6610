package snapshot

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// plant makes files below a new folder: content by path; a path that ends in "*" is executable, and
// content that begins with "-> " makes a link.
func plant(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		write(t, root, name, files[name])
	}
	return root
}

func write(t testing.TB, root, name, content string) {
	t.Helper()
	mode := fs.FileMode(0o644)
	if plain, ok := strings.CutSuffix(name, "*"); ok {
		name, mode = plain, 0o755
	}
	full := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if target, ok := strings.CutPrefix(content, "-> "); ok {
		if err := os.Symlink(target, full); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(full, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// look reads a folder back: what plant takes, plus times in seconds of files.
func look(t *testing.T, root string) (files map[string]string, times map[string]int64) {
	t.Helper()
	files, times = map[string]string{}, map[string]int64{}
	err := filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, full)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(full)
			files[name] = "-> " + target
			return err
		}
		times[name] = info.ModTime().Unix()
		content, err := os.ReadFile(full)
		files[name+map[bool]string{true: "*"}[info.Mode()&0o111 != 0]] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, times
}

func scan(t testing.TB, root string, exclude ...string) *Tree {
	t.Helper()
	tree, err := Scan(root, Options{Exclude: func(path string) bool { return slices.Contains(exclude, path) }})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func upload(t testing.TB, store *memory, root string) Snapshot {
	t.Helper()
	s, err := Upload(t.Context(), store, scan(t, root), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func paths(tree *Tree) []string {
	var names []string
	for _, f := range tree.Files {
		names = append(names, f.Path)
	}
	return names
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func wantFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got, _ := look(t, dir)
	if !maps.Equal(got, want) {
		t.Errorf("%s holds\n%q\nwant\n%q", dir, got, want)
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("%s holds %v (%v), want nothing", dir, entries, err)
	}
}

// cancelSoon bounds a test that could wait for ever.
func cancelSoon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// onceAt calls f before the first put only.
func onceAt(f func()) func(string, io.Reader) error {
	called := false
	return func(string, io.Reader) error {
		if !called {
			called = true
			f()
		}
		return nil
	}
}

// age moves times back, as if the files had been written an hour ago.
func age(t *testing.T, root string, names ...string) {
	t.Helper()
	past := time.Now().Add(-time.Hour)
	for _, name := range names {
		if err := os.Chtimes(filepath.Join(root, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
}

func unlink(t *testing.T, root, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
}
