package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Logs are found whatever the folder is called, and nothing else is taken for one.
func TestLogFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*?", "run")
	for _, name := range []string{
		"rank-10.log", "rank-2.log", "launcher-0.log", "restart-1/rank-0.log",
		"notes.log", "rank-3.txt", "restart-x/rank-0.log", "other/rank-0.log",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var streams []string
	for _, f := range logFiles(dir) {
		streams = append(streams, f.Stream)
		if f.Bytes != 5 || !filepath.IsAbs(f.Path) {
			t.Errorf("%+v", f)
		}
	}
	if want := []string{"0/rank-2", "0/rank-10", "0/launcher-0", "1/rank-0"}; !slices.Equal(streams, want) {
		t.Errorf("found %q, want %q", streams, want)
	}
	if none := logFiles(filepath.Join(dir, "absent")); len(none) != 0 {
		t.Errorf("found %v where nothing is", none)
	}
}
