package main_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "qj"

// may holds which of our packages each of our packages may import; a trailing /... takes in what lies
// below. The row of its own name counts for a package, else the longest that takes it in. Tests may import what they like.
var may = map[string][]string{
	"":                     {"cli"},
	"jobspec":              {},
	"process":              {},
	"statefile":            {},
	"gpu":                  {},
	"configs/...":          {"jobspec"},
	"blob":                 {},
	"blob/...":             {"blob"},
	"snapshot":             {"blob"},
	"logsync":              {"blob"},
	"launcher":             {"jobspec", "process", "gpu", "blob/...", "snapshot", "logsync", "statefile"},
	"launcher/qj-node":     {"launcher", "jobspec", "process", "gpu", "blob/...", "snapshot", "logsync", "statefile"},
	"launcher/embedded":    {},
	"backends":             {"jobspec"},
	"backends/...":         {"backends", "jobspec", "process", "gpu", "statefile"},
	"backends/backendtest": {"backends", "jobspec", "blob", "snapshot"},
	"runs":                 {"jobspec", "blob", "backends", "statefile"},
	"cli/...":              {"jobspec", "process", "configs/...", "blob/...", "snapshot", "logsync", "launcher/...", "backends/...", "runs", "cli/...", "statefile"},
	"test/smalldisk":       {},
	"test/...":             {"jobspec", "configs", "blob/...", "snapshot", "logsync", "backends", "runs"},
}

// notOnNodes names what the node binary must not carry, however deep: nodes start it thousands of times,
// and it travels to each.
var notOnNodes = []string{
	module + "/backends/...",
	module + "/cli/...",
	module + "/configs/...",
	module + "/launcher/embedded",
	module + "/runs",
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity/...",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/...",
	"github.com/urfave/cli/...",
	"gopkg.in/yaml.v3",
	"k8s.io/...",
}

func TestPackagesImportOnlyWhatLiesBelow(t *testing.T) {
	for pkg, imports := range ownImports(t) {
		row, known := rowOf(pkg)
		if !known {
			t.Errorf("%s has no row in the table of layers", pkg)
			continue
		}
		for _, imported := range imports {
			if !slices.ContainsFunc(may[row], func(row string) bool { return within(imported, row) }) {
				t.Errorf("%q must not import %s", pkg, imported)
			}
		}
	}
}

func TestNodeBinaryIsLean(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./launcher/qj-node")
	list.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list dependencies: %v", err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/launcher") {
		t.Fatalf("the node binary does not depend on launcher: %v", deps)
	}
	for _, dep := range deps {
		for _, row := range notOnNodes {
			if within(dep, row) {
				t.Errorf("launcher/qj-node depends on %s", dep)
			}
		}
	}
}

func TestRowOf(t *testing.T) {
	for pkg, want := range map[string]string{
		"":                  "",
		"blob":              "blob",
		"blob/azure":        "blob/...",
		"backends/k8s/wire": "backends/...",
		"launcher/embedded": "launcher/embedded",
		"cli":               "cli/...",
	} {
		if row, ok := rowOf(pkg); !ok || row != want {
			t.Errorf("row of %q is %q, %v, want %q", pkg, row, ok, want)
		}
	}
	for _, pkg := range []string{"utils", "blobs", "jobspec/wire", "snapshot/zip"} {
		if row, ok := rowOf(pkg); ok {
			t.Errorf("%q has row %q, want none", pkg, row)
		}
	}
}

// rowOf finds the row of may that fits pkg best.
func rowOf(pkg string) (best string, ok bool) {
	if _, ok := may[pkg]; ok {
		return pkg, true
	}
	for row := range may {
		if within(pkg, row) && len(row) > len(best) {
			best, ok = row, true
		}
	}
	return best, ok
}

func within(pkg, row string) bool {
	parent, deep := strings.CutSuffix(row, "/...")
	return pkg == parent || deep && strings.HasPrefix(pkg, parent+"/")
}

// ownImports maps each of our packages to those of ours that its non-test files import, whatever system
// they are for. It reads the files itself, so that a cached result lasts no longer than they do.
func ownImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || len(entry.Name()) > 1 && entry.Name()[0] == '.'):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(path.Dir(filepath.ToSlash(name)), ".")
		own := imports[pkg]
		for _, spec := range file.Imports {
			whole, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if imported, ok := strings.CutPrefix(whole, module+"/"); ok {
				own = append(own, imported)
			}
		}
		imports[pkg] = own // even if none: a package at the bottom has a row too
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}
