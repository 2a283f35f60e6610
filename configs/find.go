package configs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const fileName = "qj.yaml"

// findProject is the nearest folder upwards from dir with qj.yaml, aux_data/ or an earlier init; dir
// itself if there is none.
func findProject(dir string, pinned func(string) bool) string {
	found, ok := upwards(dir, func(d string) bool {
		return isFile(filepath.Join(d, fileName)) || isDir(filepath.Join(d, "aux_data")) || pinned != nil && pinned(d)
	})
	if !ok {
		return dir
	}
	return found
}

func upwards(dir string, has func(string) bool) (string, bool) {
	for {
		if has(dir) {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// absolute resolves ~ and relative paths.
func absolute(dir, home, path string) string {
	if home != "" && (path == "~" || strings.HasPrefix(path, "~/")) {
		return filepath.Join(home, path[1:])
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// shown is how messages name a file: relative to the project, else with ~ for the home folder.
func shown(project, home, file string) string {
	if rel, ok := within(project, file); ok {
		return rel
	}
	if rel, ok := within(home, file); ok && home != "" {
		return "~/" + rel
	}
	return file
}

// within is file's path below dir, with slashes.
func within(dir, file string) (string, bool) {
	rel, err := filepath.Rel(dir, file)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// readFile reads a configuration file. A pipe that somebody left where a file should be would hang qj, so
// it is read only where the user named it (`-p @<(…)`).
func readFile(path string, named bool) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	if info.IsDir() || !named && !info.Mode().IsRegular() {
		return nil, 0, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	return text, info.Mode(), nil
}

// withoutPath keeps the cause: problems name the file once, as the user knows it.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	return err
}
