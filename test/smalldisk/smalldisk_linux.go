// Package smalldisk gives tests file systems that fill up. It needs no root where users may make
// namespaces, and leaves nothing mounted.
package smalldisk

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Inside runs the calling test again as root of a mount namespace of its own, where it may mount small
// file systems that vanish with it. It returns false in the outer process, which has nothing more to do.
func Inside(t *testing.T) bool {
	t.Helper()
	const inside = "QJ_TEST_NAMESPACE"
	if os.Getenv(inside) != "" {
		return true
	}
	args := []string{"-m"}
	if os.Geteuid() != 0 {
		args = []string{"-Urm"}
	}
	args = append(args, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("this test needs `unshare %s`, as root or where users may make namespaces: %v\n%s", args[0], err, out)
	}
	return false
}

// Mount mounts an empty file system of the given size ("256k") at dir, which is made if it is not there,
// until the test ends. What still has files open there keeps them.
func Mount(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mount tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
}
