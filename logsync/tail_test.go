package logsync

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTailLines(t *testing.T) {
	long := strings.Repeat("x", 3*tailBlock)
	for _, text := range []string{
		"", "\n", "\n\n\n", "one", "one\n", "one\ntwo", "one\ntwo\n", "one\n\nthree\n", "no end\nlast\r\n",
		long, long + "\n", "a\n" + long + "\nb\n", strings.Repeat("line\n", 40_000),
		strings.Repeat("y", tailBlock-1) + "\n" + strings.Repeat("z", tailBlock-1) + "\n",
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{-1, 0, 1, 2, 3, 100, 39_999, 40_000, 40_001} {
			lines := strings.SplitAfter(text, "\n")
			if lines[len(lines)-1] == "" {
				lines = lines[:len(lines)-1]
			}
			want := strings.Join(lines[max(0, len(lines)-max(n, 0)):], "")
			got, err := TailLines(path, n)
			if err != nil || string(got) != want {
				t.Errorf("last %d lines of %d bytes: %d bytes, %v, want %d", n, len(text), len(got), err, len(want))
			}
		}
	}
}

func TestTailLinesIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	text := strings.Repeat("progress\r", 1<<20) + "end\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := TailLines(path, 100)
	if err != nil || len(got) > tailMost+tailBlock || len(got) < tailMost/2 || !strings.HasSuffix(text, string(got)) {
		t.Errorf("%d bytes, %v, want the last %d", len(got), err, tailMost)
	}
}

func TestTailLinesOfAMissingFile(t *testing.T) {
	if _, err := TailLines(filepath.Join(t.TempDir(), "none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
}
