package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	gitIgnoreFile = ".gitignore"
	qjIgnoreFile  = ".qjignore"
)

// defaultExcludes hold in a tree that has no ignore file at all. Folders are meant at its top only: a
// package may well have a data or models folder of its own.
const defaultExcludes = `/assets
/output
/data
/models
/visualization
*.pyc
*.so
*.o
__pycache__
.build
tmp_run*
`

// GitIgnore returns git's own rules: .gitignore files from the repository's top down, info/exclude of the
// repository, and core.excludesFile. A .qjignore, in the same language, has the last word. git itself is
// not needed, nor a repository. getenv tells where the user's git settings are (HOME, XDG_CONFIG_HOME,
// GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM, GIT_CONFIG_NOSYSTEM); nil means that there are none.
//
// The root itself counts as wanted, even where a folder above ignores it.
func GitIgnore(getenv func(string) string) Ignore {
	return func(root string) (Rules, error) {
		repo, err := findRepository(root)
		if err != nil {
			return nil, err
		}
		top := root
		if repo != nil {
			top = repo.top
		}
		lists, err := repo.excludes(getenv)
		if err != nil {
			return nil, err
		}
		below, err := filepath.Rel(top, root)
		if err != nil {
			return nil, err
		}
		r, err := (&ignoreRules{top: top, git: lists}).enterPath("./" + filepath.ToSlash(below))
		if err != nil {
			return nil, err
		}
		return r.orDefaults(root)
	}
}

// ignoreRules are the ignore files that hold in one folder, in rising order of weight; those of qj weigh
// more than all of git's.
type ignoreRules struct {
	top     string // where paths start: the repository's top, or the root
	dir     string // this folder, relative to top, "" or ending in a slash
	git, qj []list
	own     bool // some ignore file lies in the tree or above
}

// Match implements Rules.
func (r *ignoreRules) Match(name string, dir bool) (rule string, ignored bool) {
	for _, lists := range [][]list{r.qj, r.git} {
		for i := len(lists) - 1; i >= 0; i-- {
			if p := lists[i].find(r.dir+name, dir); p != nil {
				return p.source, !p.negated
			}
		}
	}
	return "", false
}

// Enter implements Rules.
func (r *ignoreRules) Enter(name string) (Rules, error) { return r.enterPath(name) }

// enterPath goes down a path of folders, which begins with "./" to take in the one where r starts.
func (r *ignoreRules) enterPath(path string) (*ignoreRules, error) {
	for i, name := range strings.Split(path, "/") {
		inner := *r
		if name != "." {
			inner.dir += name + "/"
		} else if i > 0 {
			continue
		}
		if err := inner.read(gitIgnoreFile, &inner.git); err != nil {
			return nil, err
		}
		if err := inner.read(qjIgnoreFile, &inner.qj); err != nil {
			return nil, err
		}
		r = &inner
	}
	return r, nil
}

// read adds this folder's ignore file of the given name to lists, which other folders may share.
func (r *ignoreRules) read(name string, lists *[]list) error {
	full := filepath.Join(r.top, filepath.FromSlash(r.dir), name)
	// Like git, take no rules through a link: it may lead out of the tree.
	info, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(full)
	if err != nil {
		return err
	}
	r.own = true
	*lists = append(slices.Clip(*lists), list{len(r.dir), parsePatterns(r.dir+name, content)})
	return nil
}

// orDefaults puts the default excludes below all rules if no ignore file is in the tree or above.
func (r *ignoreRules) orDefaults(root string) (*ignoreRules, error) {
	if r.own {
		return r, nil
	}
	defaults := *r
	defaults.git = append([]list{{len(r.dir), parsePatterns("default", []byte(defaultExcludes))}}, r.git...)
	found, err := hasIgnoreFile(root, "", &defaults)
	if err != nil {
		return nil, fmt.Errorf("look for ignore files: %w", err)
	}
	if found {
		return r, nil
	}
	return &defaults, nil
}

// hasIgnoreFile looks through the folders that the defaults would enter: what they leave out, such as a
// folder of data, is not searched.
func hasIgnoreFile(root, dir string, rules *ignoreRules) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == gitIgnoreFile || name == qjIgnoreFile:
			return true, nil
		case !entry.IsDir() || name == ".git":
		default:
			if _, ignored := rules.Match(name, true); ignored {
				continue
			}
			inner := *rules
			inner.dir += name + "/"
			if found, err := hasIgnoreFile(root, filepath.Join(dir, name), &inner); found || err != nil {
				return found, err
			}
		}
	}
	return false, nil
}
