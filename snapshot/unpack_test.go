package snapshot

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"qj/blob"
)

func TestUnpackRefusesTampering(t *testing.T) {
	files := map[string]string{"train.py": "print(1)", "run.sh*": "#!/bin/sh"}
	flip := func(content []byte) []byte {
		content[len(content)/2] ^= 1
		return content
	}
	tests := []struct {
		name  string
		spoil func(layer, manifest []byte) ([]byte, []byte)
		says  string
	}{
		{"layer changed", func(l, m []byte) ([]byte, []byte) { return flip(l), m }, ".zip"},
		{"layer cut short", func(l, m []byte) ([]byte, []byte) { return l[:len(l)-1], m }, ".zip"},
		{"layer longer", func(l, m []byte) ([]byte, []byte) { return append(l, 0), m }, ".zip"},
		{"manifest changed", func(l, m []byte) ([]byte, []byte) { return l, append(m, '\n') }, ".json"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newMemory()
			s := upload(t, store, plant(t, files))
			key, layer := store.layer(t)
			manifest, err := blob.ReadAll(t.Context(), store, manifestKey(s.ID), maxManifest)
			if err != nil {
				t.Fatal(err)
			}
			layer, manifest = test.spoil(layer, manifest)
			store.replace(t, key, layer)
			store.replace(t, manifestKey(s.ID), manifest)
			parent := t.TempDir()
			err = Unpack(t.Context(), store, s.ID, s.Manifest, filepath.Join(parent, "code"))
			wantError(t, err, test.says, "hash mismatch")
			if !errors.Is(err, ErrMismatch) {
				t.Errorf("%v is no ErrMismatch", err)
			}
			empty(t, parent)
		})
	}
}

// layerOf makes a layer of any entries, in order: name, content, name, content, …
func layerOf(t *testing.T, store *memory, entries ...string) layer {
	t.Helper()
	var content bytes.Buffer
	w := zip.NewWriter(&content)
	for i := 0; i < len(entries); i += 2 {
		header := &zip.FileHeader{Name: entries[i]}
		body, isLink := strings.CutPrefix(entries[i+1], "-> ")
		header.SetMode(0o644)
		if isLink {
			header.SetMode(0o777 | fs.ModeSymlink)
		}
		out, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l := layer{SHA256: hashOf(content.Bytes()), Size: int64(content.Len())}
	store.replace(t, l.key(), content.Bytes())
	return l
}

// publish puts a manifest over layers and returns its hash.
func publish(t *testing.T, store *memory, id string, layers ...layer) string {
	t.Helper()
	body, err := manifest{Format: format, Snapshot: id, Layers: layers}.encode()
	if err != nil {
		t.Fatal(err)
	}
	store.replace(t, manifestKey(id), body)
	return hashOf(body)
}

func TestUnpackRefusesHostileLayers(t *testing.T) {
	tests := []struct {
		name    string
		entries []string
		says    string
	}{
		{"a way up", []string{"../evil", "x"}, "leads out"},
		{"a way up inside", []string{"a/../../evil", "x"}, "leads out"},
		{"an absolute name", []string{"/evil", "x"}, "leads out"},
		{"a name that is not clean", []string{"a//b", "x"}, "leads out"},
		{"no name", []string{".", "x"}, "leads out"},
		{"a folder", []string{"a/", ""}, "a/"},
		{"an absolute link", []string{"l", "-> /etc"}, "outside"},
		{"a link out", []string{"a/l", "-> ../../evil"}, "outside"},
		{"one name twice", []string{"a", "1", "a", "2"}, "twice"},
		{"a file below a link", []string{"l", "-> a", "a/x", "1", "l/evil", "2"}, `"l"`},
		{"a file below a file", []string{"f", "1", "f/g", "2"}, `"f"`},
		{"another tree", []string{"a", "1"}, "hash mismatch"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newMemory()
			id := hashOf([]byte(test.name))
			pin := publish(t, store, id, layerOf(t, store, test.entries...))
			parent := t.TempDir()
			wantError(t, Unpack(t.Context(), store, id, pin, filepath.Join(parent, "in", "code")), test.says)
			empty(t, filepath.Join(parent, "in"))
		})
	}
}

func TestUnpackLaysLayersOverEachOther(t *testing.T) {
	want := map[string]string{"kept": "1", "changed": "new", "sub/added": "4"}
	id := upload(t, newMemory(), plant(t, want)).ID
	store := newMemory()
	first := layerOf(t, store, "changed", "old", "gone/a", "2", "kept", "1")
	second := layerOf(t, store, "changed", "new", "sub/added", "4")
	second.Deletes = []string{"gone/a"}
	dir := filepath.Join(t.TempDir(), "code")
	if err := Unpack(t.Context(), store, id, publish(t, store, id, first, second), dir); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, want)
}

func TestUnpackIsDoneOnce(t *testing.T) {
	store := newMemory()
	s := upload(t, store, plant(t, map[string]string{"a": "1"}))
	dir := filepath.Join(t.TempDir(), "code")
	unpack := func(id, pin string) error { return Unpack(t.Context(), store, id, pin, dir) }
	if err := unpack(s.ID, s.Manifest); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "output", "of a rank")
	for _, key := range []string{manifestKey(s.ID)} {
		if err := store.Delete(t.Context(), key); err != nil { // nothing is read again
			t.Fatal(err)
		}
	}
	if err := unpack(s.ID, s.Manifest); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, map[string]string{"a": "1", "output": "of a rank"})
	wantError(t, unpack(hashOf(nil), s.Manifest), "another snapshot")
	wantFiles(t, dir, map[string]string{"a": "1", "output": "of a rank"})
}

// A folder that Unpack did not make is never removed.
func TestUnpackSparesOtherFolders(t *testing.T) {
	store := newMemory()
	s := upload(t, store, plant(t, map[string]string{"a": "1"}))
	dir := plant(t, map[string]string{"thesis.tex": "years"})
	wantError(t, Unpack(t.Context(), store, s.ID, s.Manifest, dir), dir, "not unpacked by qj")
	wantFiles(t, dir, map[string]string{"thesis.tex": "years"})
	if err := Unpack(t.Context(), store, s.ID, s.Manifest, t.TempDir()); err != nil {
		t.Errorf("into an empty folder: %v", err)
	}
}

// The states that a kill can leave: each is made by hand here, and by real kills in kill_test.go.
func TestUnpackRedoesWhatIsHalfDone(t *testing.T) {
	store := newMemory()
	want := map[string]string{"a": "1", "b/c": "2"}
	s := upload(t, store, plant(t, want))
	states := map[string]map[string]string{
		"while unpacking":            {"code.partial/tree/a": "ha", "code.partial/layer": "x"},
		"between rename and mark":    {"code.partial/layer": "x", "code/a": "ha"},
		"while redoing":              {"code.partial/done": "x", "code/b/stale": "x"},
		"folder lost, mark kept":     {"code.done": s.ID + " " + s.Manifest + "\n"},
		"after the mark, not tidied": {"code.partial/x": ""},
	}
	for name, files := range states {
		t.Run(name, func(t *testing.T) {
			parent := plant(t, files)
			dir := filepath.Join(parent, "code")
			if err := Unpack(t.Context(), store, s.ID, s.Manifest, dir); err != nil {
				t.Fatal(err)
			}
			wantFiles(t, dir, want)
			if _, err := os.Stat(dir + ".partial"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the partial folder is still there: %v", err)
			}
		})
	}
}

func TestUnpackWantsWhatItCanRead(t *testing.T) {
	store := newMemory()
	id := hashOf(nil)
	dir := filepath.Join(t.TempDir(), "code")
	wantError(t, Unpack(t.Context(), store, "../x", "", dir), "not the id")
	err := Unpack(t.Context(), store, id, id, dir)
	wantError(t, err, manifestKey(id))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is no fs.ErrNotExist", err)
	}
	for body, says := range map[string]string{
		`{"format": 2, "layers": "new"}`: "update qj",
		`{"snapshot": "` + id + `"}`:     "no format",
		`{"format": 1, "snapsh`:          "damaged",
		`{"format": 1, "snapshot": "` + id + `", "layers": [{"sha256": "../x"}]}`: "damaged",
		`{"format": 1, "snapshot": "x"}`:                                          "damaged",
	} {
		store.replace(t, manifestKey(id), []byte(body))
		wantError(t, Unpack(t.Context(), store, id, hashOf([]byte(body)), dir), manifestKey(id), says)
	}
}
