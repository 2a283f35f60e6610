package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// repository is what the ignore rules need of a git repository.
type repository struct {
	top    string // of the working tree
	common string // the .git folder, shared by all working trees
}

// findRepository returns the repository that dir lies in, nil if there is none.
func findRepository(dir string) (*repository, error) {
	for {
		common, err := gitFolder(filepath.Join(dir, ".git"))
		if err != nil {
			return nil, err
		}
		if common != "" {
			return &repository{dir, common}, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, nil
		}
		dir = parent
	}
}

// gitFolder follows a .git entry, which is a file in a submodule and in an added working tree, to the
// folder that holds info/exclude and config. "" means that it is no repository.
func gitFolder(dotGit string) (string, error) {
	info, err := os.Stat(dotGit)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	folder := dotGit
	if !info.IsDir() {
		target, err := readPath(dotGit, "gitdir: ")
		if err != nil || target == "" {
			return "", err
		}
		folder = resolve(filepath.Dir(dotGit), target)
	}
	if _, err := os.Lstat(filepath.Join(folder, "HEAD")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil // a folder that is only called .git
		}
		return "", err
	}
	common, err := readPath(filepath.Join(folder, "commondir"), "")
	if err != nil || common == "" {
		return folder, err
	}
	return resolve(folder, common), nil
}

// readPath returns the path after prefix in a file of one line, "" if the file is not there or not such.
func readPath(name, prefix string) (string, error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	path, ok := bytes.CutPrefix(content, []byte(prefix))
	if err != nil || !ok {
		return "", err
	}
	return strings.TrimRight(string(path), "\r\n"), nil
}

func resolve(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// excludes reads the rules that lie outside the working tree, in rising order of weight. A nil repository
// has those of the user alone.
func (r *repository) excludes(getenv func(string) string) ([]list, error) {
	names := []string{}
	if getenv != nil {
		global, err := r.excludesFile(getenv)
		if err != nil {
			return nil, err
		}
		names = append(names, global)
	}
	if r != nil {
		names = append(names, filepath.Join(r.common, "info", "exclude"))
	}
	var lists []list
	for _, name := range names {
		content, err := readIfAny(name)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list{0, parsePatterns(name, content)})
	}
	return lists, nil
}

// excludesFile is git's core.excludesFile: as the last of the configuration files sets it, else the
// default place. "" means none.
func (r *repository) excludesFile(getenv func(string) string) (string, error) {
	home, xdg := getenv("HOME"), getenv("XDG_CONFIG_HOME")
	if xdg == "" && home != "" {
		xdg = filepath.Join(home, ".config")
	}
	file := ""
	if xdg != "" {
		file = filepath.Join(xdg, "git", "ignore")
	}
	for _, config := range r.configFiles(getenv, home, xdg) {
		content, err := readIfAny(config)
		if err != nil {
			return "", err
		}
		value, ok := configValue(content, "core", "excludesfile")
		if !ok {
			continue
		}
		if rest, ok := strings.CutPrefix(value, "~/"); ok {
			value = filepath.Join(home, rest)
		} else if value != "" && r != nil {
			value = resolve(r.top, value)
		}
		file = value
	}
	return file, nil
}

// configFiles lists git's configuration files, the weightiest last.
func (r *repository) configFiles(getenv func(string) string, home, xdg string) []string {
	var files []string
	if system := getenv("GIT_CONFIG_SYSTEM"); system != "" {
		files = append(files, system)
	} else if getenv("GIT_CONFIG_NOSYSTEM") == "" {
		files = append(files, "/etc/gitconfig")
	}
	if global := getenv("GIT_CONFIG_GLOBAL"); global != "" {
		files = append(files, global)
	} else {
		if xdg != "" {
			files = append(files, filepath.Join(xdg, "git", "config"))
		}
		if home != "" {
			files = append(files, filepath.Join(home, ".gitconfig"))
		}
	}
	if r != nil {
		files = append(files, filepath.Join(r.common, "config"))
	}
	return files
}

// readIfAny reads a file; one that is not there, or "", is empty.
func readIfAny(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read git's settings: %w", err)
	}
	return content, nil
}
