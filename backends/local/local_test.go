//go:build unix

package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"qj/backends"
	"qj/backends/backendtest"
	"qj/blob/file"
	"qj/jobspec"
	"qj/launcher"
)

const (
	poll     = 20 * time.Millisecond
	patience = time.Minute
)

// launchVerb makes the test binary play the node's part.
const launchVerb = "launch"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == launchVerb {
		os.Exit(launcher.Main(os.Args[:2], os.Args[2:], os.Stderr))
	}
	os.Exit(m.Run())
}

// options are those of a machine without GPUs.
func options(t *testing.T) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() { settle(t, dir) }) // launchers tidy up a moment longer than their runs last
	return Options{
		Dir: dir, Launcher: []string{self, launchVerb}, User: "1000:1000",
		Unpack:  func() error { return nil },
		GPUs:    func(context.Context, []string) (int, error) { return 0, nil },
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()},
	}
}

// settle waits until nobody runs a node of any run any more.
func settle(t *testing.T, dir string) {
	deadline := time.Now().Add(patience)
	runs, err := os.ReadDir(filepath.Join(dir, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, run := range runs {
		f := folder{dir: filepath.Join(dir, "runs", run.Name()), id: jobspec.RunID(run.Name())}
		for node := range f.nodes() {
			for {
				pair, err := f.pair(node)
				if err != nil || !alive(pair) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("node %d of %s is still running", node, run.Name())
				}
				time.Sleep(poll)
			}
		}
	}
}

func open(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func harness(t *testing.T, o Options) backendtest.Harness {
	t.Helper()
	dir := t.TempDir()
	store, err := file.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return backendtest.Harness{
		Open:  func(t *testing.T) backends.Backend { return open(t, o) },
		Store: store, StoreRef: jobspec.StoreRef{Type: "file", Path: dir},
		Poll: poll, Patience: patience,
		Can: backendtest.Capabilities{Resolver: true, Sheller: true, Finder: true, Poller: true},
	}
}

func TestBackend(t *testing.T) { backendtest.Run(t, harness(t, options(t))) }

// With slots, runs wait for each other, and all else is as it was.
func TestBackendWithSlots(t *testing.T) {
	o := options(t)
	o.Slots = 8
	backendtest.Run(t, harness(t, o))
}

// A runtime that only starts the program shows that the command line around it is right.
func TestBackendInContainer(t *testing.T) {
	bin, err := filepath.Abs("testdata/bin")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o := options(t)
	o.Image, o.Runtime = "registry.example/image:1", "podman"
	backendtest.Run(t, harness(t, o))
}
