package snapshot

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func TestScanLeavesOutByRule(t *testing.T) {
	tests := []struct {
		name    string
		files   map[string]string
		sub     string // the root to scan, below the planted folder
		exclude []string
		want    []string
		left    []Left
	}{
		{
			name:    "excluded paths, and no ignore file brings them back",
			files:   map[string]string{".gitignore": "!assets\n", "a": "", "assets/x/log": "", "pkg/assets/b": "", "qj.yaml": "", "qj.yaml.bak": ""},
			exclude: []string{"assets", "qj.yaml", "not/there"},
			want:    []string{".gitignore", "a", "pkg/assets/b", "qj.yaml.bak"},
			left:    []Left{{"assets", true, RuleExclude}, {"qj.yaml", false, RuleExclude}},
		},
		{
			name:  "git's folder, and its file in a submodule",
			files: map[string]string{".git/HEAD": "", ".gitignore": "!.git\n", "third/.git": "gitdir: ../x", "third/a": ""},
			want:  []string{".gitignore", "third/a"},
			left:  []Left{{".git", true, RuleGit}, {"third/.git", false, RuleGit}},
		},
		{
			name:  "defaults, without any ignore file",
			files: map[string]string{"data/x": "", "pkg/data/y": "", "a.pyc": "", "pkg/b.so": "", "pkg/__pycache__/z": "", "tmp_run_1/q": "", "a.py": ""},
			want:  []string{"a.py", "pkg/data/y"},
			left: []Left{{"a.pyc", false, "default:6: *.pyc"}, {"data", true, "default:3: /data"}, {"pkg/__pycache__", true, "default:9: __pycache__"},
				{"pkg/b.so", false, "default:7: *.so"}, {"tmp_run_1", true, "default:11: tmp_run*"}},
		},
		{
			name:  "no defaults with an ignore file, however deep",
			files: map[string]string{"data/x": "", "a.pyc": "", "pkg/sub/.gitignore": "# none\n"},
			want:  []string{"a.pyc", "data/x", "pkg/sub/.gitignore"},
		},
		{
			name:  "qj's ignore file has the last word",
			files: map[string]string{".gitignore": "*.bin\n", "sub/.gitignore": "keep.txt\n", ".qjignore": "notes*\n!*.bin\n!keep.txt\n", "a.bin": "", "notes.md": "", "sub/keep.txt": ""},
			want:  []string{".gitignore", ".qjignore", "a.bin", "sub/.gitignore", "sub/keep.txt"},
			left:  []Left{{"notes.md", false, ".qjignore:1: notes*"}},
		},
		{
			name:  "the rules above a subfolder of a repository",
			files: map[string]string{"repo/.git/HEAD": "", "repo/.gitignore": "*.log\n/a/b/top\n", ".gitignore": "*\n", "repo/a/b/x.log": "", "repo/a/b/top": "", "repo/a/b/c": ""},
			sub:   "repo/a/b",
			want:  []string{"c"},
			left:  []Left{{"top", false, ".gitignore:2: /a/b/top"}, {"x.log", false, ".gitignore:1: *.log"}},
		},
		{
			name:  "a working tree's rules in its common folder",
			files: map[string]string{"main/.git/info/exclude": "*.tmp\n", "main/.git/worktrees/w/HEAD": "", "main/.git/worktrees/w/commondir": "../..\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n", "w/a.tmp": "", "w/b": ""},
			sub:   "w",
			want:  []string{"b"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree := scan(t, filepath.Join(plant(t, test.files), test.sub), test.exclude...)
			if got := paths(tree); !slices.Equal(got, test.want) {
				t.Errorf("takes %q, want %q", got, test.want)
			}
			if test.left != nil && !slices.Equal(tree.Left, test.left) {
				t.Errorf("leaves\n%+v, want\n%+v", tree.Left, test.left)
			}
		})
	}
}

// What is ignored is not looked at: not its kind, nor, for a folder, its rights and content.
func TestScanDoesNotEnterIgnoredFolders(t *testing.T) {
	root := plant(t, map[string]string{".gitignore": "hidden/\nsocket\n", "a": ""})
	if err := os.Mkdir(filepath.Join(root, "hidden"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hidden/pipe", "socket"} {
		if err := syscall.Mkfifo(filepath.Join(root, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := paths(scan(t, root)), []string{".gitignore", "a"}; !slices.Equal(got, want) {
		t.Errorf("takes %q, want %q", got, want)
	}
}

func TestIgnoreIsReplaceable(t *testing.T) {
	root := plant(t, map[string]string{".gitignore": "a\n", "a": "", "b": "", "c/b": ""})
	tree, err := Scan(root, Options{Ignore: func(string) (Rules, error) { return onlyNamed("b"), nil }})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := paths(tree), []string{"b", "c/b"}; !slices.Equal(got, want) {
		t.Errorf("takes %q, want %q", got, want)
	}
}

type onlyNamed string

func (o onlyNamed) Match(name string, dir bool) (string, bool) {
	return "only " + string(o), !dir && name != string(o)
}
func (o onlyNamed) Enter(string) (Rules, error) { return o, nil }

func TestScanRefuses(t *testing.T) {
	tests := []struct {
		name, path string
		make       func(t *testing.T, full string) error
		says       string
	}{
		{"a pipe", "x/pipe", func(_ *testing.T, full string) error { return syscall.Mkfifo(full, 0o644) }, "named pipe"},
		{"a socket", "x/s", listen, "socket"},
		{"an absolute link", "x/l", func(_ *testing.T, full string) error { return os.Symlink("/etc/passwd", full) }, "/etc/passwd"},
		{"a link out", "x/l", func(_ *testing.T, full string) error { return os.Symlink("../../other", full) }, "outside"},
		{"a link out after a way in", "x/l", func(_ *testing.T, full string) error { return os.Symlink("a/../../..", full) }, "outside"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := plant(t, map[string]string{"x/a": ""})
			if err := test.make(t, filepath.Join(root, test.path)); err != nil {
				t.Fatal(err)
			}
			_, err := Scan(root, Options{})
			wantError(t, err, test.path, test.says)
		})
	}
	_, err := Scan(filepath.Join(t.TempDir(), "missing"), Options{})
	wantError(t, err, "missing")
}

func listen(t *testing.T, full string) error {
	t.Chdir(filepath.Dir(full)) // a socket's path must be short
	listener, err := net.Listen("unix", filepath.Base(full))
	if err == nil {
		t.Cleanup(func() { listener.Close() })
	}
	return err
}

func TestConfigValue(t *testing.T) {
	tests := []struct {
		content, want string
		ok            bool
	}{
		{"[core]\n\texcludesFile = ~/x\n", "~/x", true},
		{"[Core] EXCLUDESFILE=/a b ; why\n", "/a b", true},
		{"[core]\nexcludesfile = \"/a # b\" # c\n[user]\nexcludesfile = no\n", "/a # b", true},
		{"[core]\nexcludesfile = a\nexcludesfile = C:\\\\b\n", `C:\b`, true},
		{"[core]\nexcludesfile = a\\\nb\n", "ab", true},
		{"[core \"x\"]\nexcludesfile = a\n", "", false},
		{"; [core]\n# excludesfile = a\n", "", false},
	}
	for _, test := range tests {
		got, ok := configValue([]byte(test.content), "core", "excludesfile")
		if got != test.want || ok != test.ok {
			t.Errorf("%q: %q %v, want %q %v", test.content, got, ok, test.want, test.ok)
		}
	}
}
