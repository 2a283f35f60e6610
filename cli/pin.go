package cli

import (
	"crypto/sha256"
	"encoding/hex"
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
	"qj/statefile"
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
	var p pin
	err = statefile.ReadJSON(path, &p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, withHint(fmt.Errorf("read the last init: %w", err), "`qj init` makes it anew")
	}
	return &p, jobspec.CheckFormat(path, p.Format)
}

func (a *app) writePin(p pin) error {
	path, err := a.pinPath(p.Project)
	if err != nil {
		return err
	}
	if err := statefile.WriteJSON(path, p); err != nil {
		return fmt.Errorf("remember the snapshot: %w", err)
	}
	return nil
}
