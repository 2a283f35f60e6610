package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"qj/jobspec"
)

// Index is what this machine remembers of runs: a small file each, so that a table needs no request for
// runs that ended, and shows something when a cluster does not answer. Losing it loses nothing.
type Index struct {
	Dir string
}

// entry is a remembered record. A run that ended for good never changes again.
type entry struct {
	Format int       `json:"format"`
	Seen   time.Time `json:"seen"`
	Store  string    `json:"store"`
	Record Record    `json:"record"`
}

func (x Index) path(id jobspec.RunID) string { return filepath.Join(x.Dir, string(id)+".json") }

// get returns what is remembered of a run, and when it was seen. Whatever cannot be read is unknown.
func (x Index) get(id jobspec.RunID) (Record, time.Time, bool) {
	body, err := os.ReadFile(x.path(id))
	if err != nil {
		return Record{}, time.Time{}, false
	}
	var e entry
	if json.Unmarshal(body, &e) != nil || e.Format != jobspec.Format || e.Record.ID != id {
		return Record{}, time.Time{}, false
	}
	e.Record.Store = e.Store
	return e.Record, e.Seen, true
}

// put remembers a record as it is now.
func (x Index) put(rec Record, now time.Time) error {
	if err := os.MkdirAll(x.Dir, 0o700); err != nil {
		return fmt.Errorf("index run %s: %w", rec.ID, err)
	}
	body, err := json.Marshal(entry{Format: jobspec.Format, Seen: now.UTC(), Store: rec.Store, Record: rec})
	if err != nil {
		return fmt.Errorf("index run %s: %w", rec.ID, err)
	}
	temp, err := os.CreateTemp(x.Dir, ".new-*")
	if err != nil {
		return fmt.Errorf("index run %s: %w", rec.ID, err)
	}
	_, err = temp.Write(body)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), x.path(rec.ID))
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("index run %s: %w", rec.ID, err)
	}
	return nil
}

// settled says whether a run can be taken from the index without asking anybody.
func settled(rec Record) bool {
	return rec.State().Ended() && rec.State() != jobspec.Lost
}
