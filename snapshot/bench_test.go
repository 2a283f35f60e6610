package snapshot

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goSource is a tree that every machine with this test has: about 11,500 files, 127 MB.
func goSource(b *testing.B) string {
	root, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src")
}

func BenchmarkScan(b *testing.B) {
	root := goSource(b)
	for b.Loop() {
		b.ReportMetric(float64(len(scan(b, root).Files)), "files")
	}
}

func BenchmarkUpload(b *testing.B) {
	tree := scan(b, goSource(b))
	b.SetBytes(tree.Bytes())
	for b.Loop() {
		s, err := Upload(b.Context(), newMemory(), tree, b.TempDir(), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Sent), "sent")
	}
}

func BenchmarkUploadUnchanged(b *testing.B) {
	tree, store := scan(b, goSource(b)), newMemory()
	b.SetBytes(tree.Bytes())
	if _, err := Upload(b.Context(), store, tree, b.TempDir(), nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if s, err := Upload(b.Context(), store, tree, b.TempDir(), nil); err != nil || s.Sent > 0 {
			b.Fatalf("sent %d, %v", s.Sent, err)
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	tree, store := scan(b, goSource(b)), newMemory()
	b.SetBytes(tree.Bytes())
	s, err := Upload(b.Context(), store, tree, b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	parent := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		if err := Unpack(b.Context(), store, s.ID, s.Manifest, filepath.Join(parent, fmt.Sprint(n))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	rules := list{0, parsePatterns("bench", []byte(defaultExcludes+"**/wandb/\n*.ckpt\nlogs/**/*.txt\n[Bb]uild/\n"))}
	var names []string
	for range 1000 {
		names = append(names, fmt.Sprintf("pkg/module%d/file_%d.py", random.IntN(10), random.IntN(1000)))
	}
	for i := 0; b.Loop(); i++ {
		if rules.find(names[i%len(names)], false) != nil {
			b.Fatal("a source file is ignored")
		}
	}
}
