//go:build unix

package launcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"qj/jobspec"
	"qj/snapshot"
	"qj/statefile"
)

// setUp brings the code to the node and returns the folder where ranks start. It is done once per node:
// what is complete already is left as it is.
func (l *lead) setUp(ctx context.Context) (string, error) {
	code := filepath.Join(l.facts.Work, "code")
	err := snapshot.Unpack(ctx, l.store, l.launch.Job.Code.Snapshot, l.launch.Job.Code.Manifest, code)
	if errors.Is(err, snapshot.ErrMismatch) {
		return "", fmt.Errorf("%w; once that object is removed from the store, qj init sends it anew", err)
	}
	if err != nil {
		return "", err
	}
	for _, mount := range l.launch.Job.Mounts {
		if err := link(mount, code); err != nil {
			return "", fmt.Errorf("map folder %s: %w", mount.Name, err)
		}
	}
	dir := filepath.Join(code, filepath.FromSlash(l.launch.Job.Subdir))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("find working folder: %s is not a folder of the snapshot", l.launch.Job.Subdir)
	}
	return dir, nil
}

// link makes the mapped folder appear in the code. What the snapshot itself holds under that name is
// never removed.
func link(m jobspec.Mount, code string) error {
	if info, err := os.Stat(m.Path); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", m.Path)
	}
	at := filepath.Join(code, filepath.FromSlash(m.Name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	err := os.Symlink(m.Path, at)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if there, err := os.Readlink(at); err == nil && there == m.Path {
		return nil
	}
	return fmt.Errorf("the code has something else at %s", m.Name)
}

// noteShell writes down how rank 0 of the node is started, for `qj ssh`.
func (l *lead) noteShell(dir string, env []string) error {
	return statefile.WriteJSON(filepath.Join(l.facts.Work, jobspec.ShellFile), jobspec.ShellPlace{Dir: dir, Env: env})
}
