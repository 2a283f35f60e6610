package embedded

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"io"
	"path"
	"strings"
	"testing"
)

// Whatever was embedded must be a linux program for the machine that its name tells.
func TestNodesAreWhatTheirNamesSay(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	entries, err := nodes.ReadDir("nodes")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "README.md" {
			continue
		}
		arch, isLinux := strings.CutPrefix(strings.TrimSuffix(entry.Name(), ".gz"), "qj-node-linux-")
		if _, known := machines[arch]; !isLinux || !known || path.Ext(entry.Name()) != ".gz" {
			t.Errorf("nodes/%s is none of the node binaries", entry.Name())
			continue
		}
		if got := machineOf(t, arch); got != machines[arch] {
			t.Errorf("the %s node is for %v", arch, got)
		}
	}
}

func TestNodeOfUnknownSystem(t *testing.T) {
	for _, system := range [][2]string{{"plan9", "amd64"}, {"linux", "mips"}, {"", ""}} {
		if gz, ok := Node(system[0], system[1]); ok || gz != nil {
			t.Errorf("Node(%q, %q) offers %d bytes", system[0], system[1], len(gz))
		}
	}
}

func machineOf(t *testing.T, arch string) elf.Machine {
	t.Helper()
	gz, ok := Node("linux", arch)
	if !ok {
		t.Fatalf("Node(linux, %s) is missing", arch)
	}
	r, err := gzip.NewReader(bytes.NewReader(gz))
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	return file.Machine
}
