package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type note struct{ Text string }

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.json")
	var got note
	if err := ReadJSON(path, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read before it is there: %v", err)
	}
	for _, text := range []string{"first, and longer", "second"} {
		if err := WriteJSON(path, note{text}); err != nil {
			t.Fatal(err)
		}
		if err := ReadJSON(path, &got); err != nil || got.Text != text {
			t.Errorf("read %+v, %v, want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Readers never see a part of what is being written.
func TestAlwaysWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.json")
	texts := []string{strings.Repeat("a", 100_000), "b"}
	if err := WriteJSON(path, note{texts[1]}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		var failed error
		for i := range 300 {
			failed = errors.Join(failed, WriteJSON(path, note{texts[i%2]}))
		}
		done <- failed
	}()
	for {
		var got note
		if err := ReadJSON(path, &got); err != nil || got.Text != texts[0] && got.Text != texts[1] {
			t.Fatalf("read %d bytes of text, %v", len(got.Text), err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// What cannot be written leaves the old file, and nothing beside it.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder.json")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, []byte("{}")); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("write over a folder: %v", err)
	}
	if err := WriteJSON(filepath.Join(dir, "f"), func() {}); err == nil {
		t.Error("a function was written as JSON")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.json")
	if err := Write(path, nil); err != nil {
		t.Fatal(err)
	}
	var got note
	if err := ReadJSON(path, &got); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("an empty file reads as %+v, %v", got, err)
	}
}
