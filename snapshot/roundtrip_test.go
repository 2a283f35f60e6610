package snapshot

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// oddTree has what file systems allow and formats stumble over.
func oddTree() map[string]string {
	noise := make([]byte, 3*spoolLimit) // larger than a spool, and does not compress
	random := rand.NewChaCha8([32]byte{1})
	random.Read(noise)
	return map[string]string{
		"train.py":              "print('hello')\n",
		"run.sh*":               "#!/bin/sh\n",
		".env.example":          "A=1\n",
		"empty":                 "",
		"empty.sh*":             "",
		"big.bin":               string(noise),
		"pkg/deep/er/mod.py":    strings.Repeat("x = 1\n", 100_000),
		"pkg/link.py":           "-> deep/er/mod.py",
		"pkg/up":                "-> ../train.py",
		"pkg/nowhere":           "-> not/there",
		"pkg/folder":            "-> deep",
		"with space/a b":        "1",
		"new\nline":             "2",
		"tab\tand \"quotes\"'":  "3",
		"back\\slash":           "4",
		"unicode/日本語/ünï":       "5",
		"latin\xe9":             "not UTF-8",
		"-rf":                   "6",
		"a.b":                   "sorts before a/b in bytes",
		"a/b":                   "7",
		"a-b":                   "8",
		"*star[x]?":             "9",
		".hidden/.deep/.config": "10",
	}
}

func TestRoundTrip(t *testing.T) {
	want := oddTree()
	star := want["*star[x]?"]
	root := plant(t, want)
	old := time.Date(2019, 7, 16, 6, 14, 10, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(root, "train.py"), old, old); err != nil {
		t.Fatal(err)
	}
	store, tmp := newMemory(), t.TempDir()
	s, err := Upload(t.Context(), store, scan(t, root), tmp, nil)
	if err != nil {
		t.Fatal(err)
	}
	empty(t, tmp)
	if s.Files != len(want) || s.Sent < 3*spoolLimit {
		t.Errorf("snapshot is %+v, want %d files and the noise sent", s, len(want))
	}
	dir := filepath.Join(t.TempDir(), "nodes", "code")
	if err := Unpack(t.Context(), store, s.ID, s.Manifest, dir); err != nil {
		t.Fatal(err)
	}
	if star == "" {
		t.Fatal("the tree has lost its odd name")
	}
	_, times := look(t, root)
	got, gotTimes := look(t, dir)
	before, _ := look(t, root)
	if !maps.Equal(got, before) {
		t.Errorf("unpacked %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(before)))
	}
	if !maps.Equal(gotTimes, times) || gotTimes["train.py"] != old.Unix() {
		t.Errorf("times are %v, want %v", gotTimes, times)
	}
	if again := scan(t, dir); !slices.Equal(paths(again), paths(scan(t, root))) {
		t.Errorf("scan of the unpacked tree: %q", paths(again))
	}
}

func TestOtherToolsReadLayers(t *testing.T) {
	files := oddTree()
	for name := range files { // names that the tools themselves, not the zip, cannot keep
		if strings.ContainsAny(name, "\\\n\t") || !utf8.ValidString(name) {
			delete(files, name)
		}
	}
	root := plant(t, files)
	store := newMemory()
	upload(t, store, root)
	layer := filepath.Join(t.TempDir(), "layer.zip")
	_, content := store.layer(t)
	if err := os.WriteFile(layer, content, 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, "unzip", "-t", "-qq", layer)
	unzipped := t.TempDir()
	tool(t, "unzip", "-q", layer, "-d", unzipped)
	want, wantTimes := look(t, root)
	got, times := look(t, unzipped)
	if !maps.Equal(got, want) || !maps.Equal(times, wantTimes) {
		t.Errorf("unzip made %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	names := tool(t, "python3", "-c", `
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None
for i in z.infolist():
    assert len(i.comment) in (0, 64), i
    sys.stdout.buffer.write(i.filename.encode() + b"\n")`, layer)
	if got := strings.Split(strings.TrimSpace(names), "\n"); !slices.Equal(got, paths(scan(t, root))) {
		t.Errorf("python lists %q", got)
	}
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(cancelSoon(t), name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, errors.Bytes())
	}
	return string(out)
}

func TestEqualTreeSendsNothing(t *testing.T) {
	files := map[string]string{"a/b.py": "1", "run.sh*": "2", "link": "-> a/b.py"}
	store := newMemory()
	first := upload(t, store, plant(t, files))
	other := plant(t, files)
	now := time.Now().Add(time.Hour)
	for name, mode := range map[string]os.FileMode{"a/b.py": 0o600, "run.sh": 0o711} {
		full := filepath.Join(other, name)
		if err := os.Chmod(full, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(full, now, now); err != nil {
			t.Fatal(err)
		}
	}
	puts, _ := store.Count()
	second := upload(t, store, other)
	if now, _ := store.Count(); second.Sent != 0 || now != puts {
		t.Errorf("second upload sent %d bytes in %d puts", second.Sent, now-puts)
	}
	first.Sent = 0
	if second != first {
		t.Errorf("second snapshot is %+v, want %+v", second, first)
	}
}

// Every part of a tree that counts must make another id, alone.
func TestIdentify(t *testing.T) {
	trees := map[string][]File{
		"plain":       {{Path: "a", Mode: 0o644, SHA256: "1"}},
		"content":     {{Path: "a", Mode: 0o644, SHA256: "2"}},
		"path":        {{Path: "b", Mode: 0o644, SHA256: "1"}},
		"executable":  {{Path: "a", Mode: 0o755, SHA256: "1"}},
		"link":        {{Path: "a", Mode: 0o777 | os.ModeSymlink, Link: "1"}},
		"other link":  {{Path: "a", Mode: 0o777 | os.ModeSymlink, Link: "2"}},
		"two":         {{Path: "a", Mode: 0o644, SHA256: "1"}, {Path: "b", Mode: 0o644, SHA256: "1"}},
		"nothing":     {},
		"split paths": {{Path: "a\nb", Mode: 0o644, SHA256: "1"}},
	}
	seen := map[string]string{}
	for name, files := range trees {
		id := identify(files)
		if other, ok := seen[id]; ok || !isHash(id) {
			t.Errorf("%s and %q have the id %s", name, other, id)
		}
		seen[id] = name
	}
	reversed := slices.Clone(trees["two"])
	slices.Reverse(reversed)
	if identify(reversed) != identify(trees["two"]) {
		t.Error("the order of files makes another id")
	}
	// Pinned: a change of the rule would make every snapshot in every store another one.
	const want = "a78fb1838cf2bd54a58c7309615870a60233daab42d0475bc9c30ca095028236"
	if got := identify(trees["plain"]); got != want {
		t.Errorf("id is %s, want %s", got, want)
	}
}

func TestEmptyTree(t *testing.T) {
	store := newMemory()
	s := upload(t, store, t.TempDir())
	dir := filepath.Join(t.TempDir(), "code")
	if err := Unpack(t.Context(), store, s.ID, s.Manifest, dir); err != nil {
		t.Fatal(err)
	}
	empty(t, dir)
	if key, _ := store.layer(t); key != "" {
		t.Errorf("an empty tree has the layer %s", key)
	}
}

func TestProgress(t *testing.T) {
	root := plant(t, map[string]string{"a": "12345", "b": "123", "c": "-> a"})
	var last = map[Phase]Progress{}
	var order []Phase
	_, err := Upload(t.Context(), newMemory(), scan(t, root), t.TempDir(), func(p Progress) {
		if _, ok := last[p.Phase]; !ok {
			order = append(order, p.Phase)
		}
		last[p.Phase] = p
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Phase{Hashing, Packing, Sending}; !slices.Equal(order, want) {
		t.Errorf("phases %q, want %q", order, want)
	}
	if h := last[Hashing]; h.Done != 8 || h.Total != 8 || last[Packing].Done != 8 {
		t.Errorf("ends are %+v, want 8 bytes", last)
	}
	if s := last[Sending]; s.Done == 0 || s.Done != s.Total {
		t.Errorf("sending ends at %d of %d", s.Done, s.Total)
	}
}
