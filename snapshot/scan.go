package snapshot

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Options say what Scan leaves out.
type Options struct {
	// Ignore reads the ignore rules of the tree; nil means GitIgnore without an environment.
	Ignore Ignore
	// Exclude says which files and folders, by their slash-separated path below the root, no ignore file
	// can bring back: pulled logs, qj's own configuration and account files, mapped folders. nil excludes
	// nothing.
	Exclude func(path string) bool
}

// Ignore reads the ignore rules that hold at the root of a tree. It is the one function to replace for
// other rules.
type Ignore func(root string) (Rules, error)

// Rules are the ignore rules as they stand in one folder.
type Rules interface {
	// Match says whether the entry of that name is ignored, and by which rule.
	Match(name string, dir bool) (rule string, ignored bool)
	// Enter returns the rules in the subfolder of that name. It is not called for an ignored one.
	Enter(name string) (Rules, error)
}

// The rules of Left that no ignore file holds.
const (
	RuleGit     = "git's own folder"
	RuleExclude = "never part of a snapshot"
)

// Scan lists what a snapshot of root would hold, and what it leaves out. It reads folders and ignore
// files, no content. Anything in the tree that cannot be kept is an error that names it.
func Scan(root string, o Options) (*Tree, error) {
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fmt.Errorf("scan code: %w", err)
	}
	if o.Ignore == nil {
		o.Ignore = GitIgnore(nil)
	}
	rules, err := o.Ignore(root)
	if err != nil {
		return nil, fmt.Errorf("scan code: %w", err)
	}
	s := scanner{tree: &Tree{Root: root}, exclude: o.Exclude}
	if err := s.folder("", rules); err != nil {
		return nil, fmt.Errorf("scan code: %w", err)
	}
	slices.SortFunc(s.tree.Files, byPath)
	return s.tree, nil
}

type scanner struct {
	tree    *Tree
	exclude func(path string) bool
}

func (s *scanner) folder(dir string, rules Rules) error {
	entries, err := os.ReadDir(filepath.Join(s.tree.Root, filepath.FromSlash(dir)))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if rule, left := s.leave(name, entry, rules); left {
			s.tree.Left = append(s.tree.Left, Left{Path: name, Dir: entry.IsDir(), Rule: rule})
			continue
		}
		if !entry.IsDir() {
			if err := s.file(name, entry); err != nil {
				return err
			}
			continue
		}
		inner, err := rules.Enter(entry.Name())
		if err == nil {
			err = s.folder(name, inner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) leave(name string, entry fs.DirEntry, rules Rules) (rule string, left bool) {
	if entry.Name() == ".git" {
		return RuleGit, true
	}
	if s.exclude != nil && s.exclude(name) {
		return RuleExclude, true
	}
	return rules.Match(entry.Name(), entry.IsDir())
}

func (s *scanner) file(name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	f := File{Path: name, Mode: info.Mode(), ModTime: info.ModTime()}
	switch {
	case f.isLink():
		if f.Link, err = os.Readlink(f.in(s.tree.Root)); err != nil {
			return err
		}
		if !staysInside(name, f.Link) {
			return fmt.Errorf("%s links to %s, which is outside the code", f.in(s.tree.Root), f.Link)
		}
	case info.Mode().IsRegular():
		f.Size = info.Size()
	default:
		return fmt.Errorf("%s is a %s, which a snapshot cannot keep", f.in(s.tree.Root), kindOf(info.Mode()))
	}
	s.tree.Files = append(s.tree.Files, f)
	return nil
}

// staysInside says whether a link at the path name points into the tree, wherever the tree is put.
func staysInside(name, target string) bool {
	target = filepath.ToSlash(target)
	if target == "" || path.IsAbs(target) || filepath.VolumeName(target) != "" {
		return false
	}
	reached := path.Join(path.Dir(name), target)
	return reached != ".." && !strings.HasPrefix(reached, "../")
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeDevice != 0:
		return "device"
	default:
		return "special file"
	}
}
