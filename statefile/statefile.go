// Package statefile keeps what processes of one user tell each other on one machine: small private files
// that are always seen whole, whoever is killed while writing one. It knows nothing of what they mean.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces the file at path, readable by its owner only. Missing folders are made. A power cut may
// leave the old file, the new one, or an empty one.
func Write(path string, body []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	temp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temp.Write(body)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteJSON is Write of v's JSON.
func WriteJSON(path string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return Write(path, body)
}

// ErrDamaged is wrapped by the error for a file that can be read but makes no sense, as after a power cut.
var ErrDamaged = errors.New("damaged file")

// ReadJSON reads what WriteJSON wrote. A missing file is fs.ErrNotExist.
func ReadJSON(path string, into any) error {
	body, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: parse %s: %w", ErrDamaged, path, err)
	}
	return nil
}
