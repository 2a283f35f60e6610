package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"qj/jobspec"
	"qj/snapshot"
)

// pin remembers the last init of a project folder: which snapshot, in which store, and of which files,
// so that a submit can tell whether they changed since.
type pin struct {
	Format  int             `json:"format"`
	Project string          `json:"project"`
	Store   string          `json:"store"`
	At      time.Time       `json:"at"`
	Code    jobspec.Code    `json:"code"`
	Files   []snapshot.File `json:"files"`
}

// holds says whether the snapshot has the folder in which ranks are to start: one without files is in none.
func (p *pin) holds(subdir string) error {
	if subdir == "" || slices.ContainsFunc(p.Files, func(f snapshot.File) bool { return strings.HasPrefix(f.Path, subdir+"/") }) {
		return nil
	}
	return withHint(fmt.Errorf("the snapshot has no file below %s, where the command is to start", subdir),
		"submit from a folder with code, or take it in with --init")
}

// pinPath is where the pin of a project folder lies: by its real path, in the state folder.
func (a *app) pinPath(project string) (string, error) {
	real, err := filepath.EvalSymlinks(project)
	if err != nil {
		return "", fmt.Errorf("find project folder: %w", err)
	}
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(a.stateDir(), "pins", hex.EncodeToString(sum[:16])+".json"), nil
}

func (a *app) isPinned(dir string) bool {
	path, err := a.pinPath(dir)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil
}

// readPin returns nil if there was no init.
func (a *app) readPin(project string) (*pin, error) {
	path, err := a.pinPath(project)
	if err != nil {
		return nil, err
	}
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the last init: %w", err)
	}
	var p pin
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, withHint(fmt.Errorf("read the last init: %s: %w", path, err), "`qj init` makes it anew")
	}
	return &p, jobspec.CheckFormat(path, p.Format)
}

func (a *app) writePin(p pin) error {
	path, err := a.pinPath(p.Project)
	if err != nil {
		return err
	}
	body, err := json.Marshal(p)
	if err == nil {
		err = writeFile(path, body)
	}
	if err != nil {
		return fmt.Errorf("remember the snapshot: %w", err)
	}
	return nil
}

// writeFile replaces a private file as a whole.
func writeFile(path string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(body)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return err
}
