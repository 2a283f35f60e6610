package snapshot

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gitCommand is the reference in a world of its own: home is all that it knows of the user.
func gitCommand(t *testing.T, home, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(cancelSoon(t), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	return cmd
}

// git returns the NUL-separated names that git prints, sorted.
func git(t *testing.T, home, dir string, args ...string) []string {
	t.Helper()
	cmd := gitCommand(t, home, dir, args...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, errors.Bytes())
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// initGit makes the least that git takes for a repository: `git init` is a process, and this is called often.
func initGit(t *testing.T, root string) {
	t.Helper()
	for _, folder := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(root, ".git", folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root, ".git/HEAD", "ref: refs/heads/main\n")
}

func scanWith(t *testing.T, home, dir string) *Tree {
	t.Helper()
	getenv := func(name string) string {
		return map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}[name]
	}
	tree, err := Scan(dir, Options{Ignore: GitIgnore(getenv)})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// The property: what Scan takes is what git lists, for random trees and random ignore files in all the
// places that git reads. Each tree serves ten times, for most of the time goes into making it.
func TestScanTakesWhatGitTakes(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		root, home := t.TempDir(), t.TempDir()
		initGit(t, root)
		folders := growTree(t, random, root, 3)
		for range 10 {
			writeRules(t, random, root, home, folders)
			compare(t, seed, home, root)
			for _, sub := range []string{"a", "b/a", "foo"} {
				dir := filepath.Join(root, sub)
				if !slices.Contains(folders, dir) {
					continue
				}
				if ignored := gitCommand(t, home, root, "check-ignore", "-q", sub).Run() == nil; !ignored {
					compare(t, seed, home, dir)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// writeRules writes ignore files anew, into some of the folders and all the places outside the tree.
func writeRules(t *testing.T, random *rand.Rand, root, home string, folders []string) {
	t.Helper()
	for _, folder := range folders {
		os.Remove(filepath.Join(folder, ".gitignore"))
		if random.IntN(4) == 0 {
			write(t, folder, ".gitignore", randomRules(random, 3))
		}
	}
	write(t, root, ".gitignore", randomRules(random, 6))
	write(t, root, ".git/info/exclude", randomRules(random, 2))
	write(t, home, ".config/git/ignore", randomRules(random, 2))
	os.Remove(filepath.Join(home, ".gitconfig"))
	if random.IntN(3) == 0 {
		write(t, home, ".gitconfig", "[user]\n\tname = x\n[core]\n\texcludesFile = \"~/mine\" # here\n")
		write(t, home, "mine", randomRules(random, 2))
	}
}

func compare(t *testing.T, seed uint64, home, dir string) {
	t.Helper()
	want := git(t, home, dir, "ls-files", "-o", "--exclude-standard", "-z")
	got := paths(scanWith(t, home, dir))
	if slices.Equal(got, want) {
		return
	}
	var rules strings.Builder
	for _, name := range []string{".gitignore", "*/.gitignore", "*/*/.gitignore", ".git/info/exclude"} {
		found, _ := filepath.Glob(filepath.Join(dir, name))
		for _, file := range found {
			content, _ := os.ReadFile(file)
			fmt.Fprintf(&rules, "--- %s\n%s", file, content)
		}
	}
	t.Errorf("seed %d, %s: only here %q, only git %q\n%s", seed, dir, without(got, want), without(want, got), &rules)
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

var nameParts = []string{"a", "b", "foo", "bar", ".x", "a.py", "b.pyc", "x y", "é", "[x]", "#c", "!d", "back\\", "end "}

// growTree makes random files and links below dir, and returns the folders among them.
func growTree(t *testing.T, random *rand.Rand, dir string, depth int) (folders []string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range nameParts {
		switch full := filepath.Join(dir, name); {
		case depth > 0 && random.IntN(4) == 0:
			folders = append(folders, full)
			folders = append(folders, growTree(t, random, full, depth-1)...)
		case random.IntN(2) == 0:
			write(t, dir, name, "")
		case random.IntN(10) == 0:
			write(t, dir, name, "-> a")
		}
	}
	return folders
}

var ruleParts = []string{"a", "b", "foo", "bar", "fo", ".x", "*", "*", "**", "**", "?", "[a-f]", "[!a]", "[]x]", "[^b", "[[:alpha:]]",
	"[[:nope:]]", "[[:punct:]]", "[[:space:][:xdigit:]]", "[^[:graph:]]", "[[:lower:]-z]", "[[:cntrl:]", "[[:upper:][:blank:][:alnum:]]", "[[:print:]]", "[[:digit:].]", "[a-", "[\\]]", "/", "/", "/", "\\", "\\ ", " ", "x y", "*.py", "*.pyc", ".py", "é", "!", "#", "\\!", "\\#", "[x]", "\\[x\\]", "d", "c"}

func randomRules(random *rand.Rand, n int) string {
	var text strings.Builder
	for range random.IntN(n + 1) {
		if random.IntN(3) == 0 {
			text.WriteByte('!')
		}
		for range 1 + random.IntN(5) {
			text.WriteString(ruleParts[random.IntN(len(ruleParts))])
		}
		text.WriteString([]string{"\n", "\n", "\n", "\r\n", " \n", "  \n", "\\ \n"}[random.IntN(7)])
	}
	return text.String()
}

// One repository, hundreds of patterns, each asked alone of git and of us.
func TestPatternsMatchAsGitMatches(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	initGit(t, root)
	random := rand.New(rand.NewPCG(7, 7))
	growTree(t, random, root, 2)
	for _, name := range []string{"a**b", "foo/xbar", "foobar/a/b", "dir/a.b/c.py"} {
		write(t, root, filepath.Join("more", name), "")
	}
	all := git(t, home, root, "ls-files", "-o", "-z")
	for range 1500 {
		rules := strings.TrimSuffix(randomRules(random, 1), "\n")
		list := list{0, parsePatterns("test", []byte(rules))}
		if len(list.patterns) != 1 || list.patterns[0].negated || trimLine(rules) != rules {
			continue // -x takes the pattern as it stands
		}
		want := git(t, home, root, "ls-files", "-o", "-z", "-x", rules)
		var got []string
		for _, path := range all {
			if !hidden(&list, path) {
				got = append(got, path)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: only here %q, only git %q", rules, without(got, want), without(want, got))
		}
	}
}

func hidden(l *list, path string) bool {
	for i := range path {
		if path[i] == '/' && l.find(path[:i], true) != nil {
			return true
		}
	}
	return l.find(path, false) != nil
}

func TestGlob(t *testing.T) {
	tests := []struct {
		glob, text string
		want       bool
	}{
		{"*.py", "a.py", true}, {"*.py", "a/b.py", false}, {"*", "", true}, {"*", "a/b", false},
		{"**/b", "b", true}, {"**/b", "x/y/b", true}, {"**/b", "xb", false}, {"a/**", "a/b/c", true}, {"a/**", "a", false},
		{"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"a/**/b", "ab", false}, {"x**y", "x/y", false},
		{"[a-c]", "b", true}, {"[!a-c]", "b", false}, {"[^a]", "/", false}, {"[]]", "]", true}, {"[a-]", "-", true},
		{"[[:digit:]_]", "7", true}, {"[[:digit:]_]", "x", false}, {"[[:oops:]]", "o", false}, {"[", "[", false},
		{`\*`, "*", true}, {`\*`, "x", false}, {`a\`, "a", false}, {"?", "é", false}, {"??", "é", true}, {"?", "/", false},
	}
	for _, test := range tests {
		g, ok := compileGlob(test.glob)
		if got := ok && g.match(test.text); got != test.want {
			t.Errorf("%q on %q: %v, want %v", test.glob, test.text, got, test.want)
		}
	}
}

func FuzzPatterns(f *testing.F) {
	f.Add("*.pyc\n!a/**/[a-z]\n", "a/b.pyc")
	f.Add("[[:x\n[\\\n/\\\n**/\n***a***/**", "a//b")
	f.Add(strings.Repeat("*a", 50)+"b", strings.Repeat("a", 200))
	f.Fuzz(func(t *testing.T, rules, path string) {
		patterns := parsePatterns("fuzz", []byte(rules))
		for i := range patterns {
			p := &patterns[i]
			if p.match(path, false) && !p.match(path, true) {
				t.Errorf("%q takes the file %q, but not a folder of that name", p.source, path)
			}
			if p.never && p.match(path, true) {
				t.Errorf("%q is malformed and takes %q", p.source, path)
			}
		}
	})
}
