package runs

import (
	"fmt"
	"path/filepath"
	"time"

	"qj/jobspec"
	"qj/statefile"
)

// Index is what this machine remembers of runs: a small file each, so that a table needs no request for
// runs that ended, and shows something when a cluster does not answer. Losing it loses nothing.
type Index struct {
	Dir string
}

// entry is a remembered record. The state of a run that ended for good never changes again;
// what replaced it later may be news to another machine.
type entry struct {
	Format int       `json:"format"`
	Seen   time.Time `json:"seen"`
	Store  string    `json:"store"`
	Record Record    `json:"record"`
}

func (x Index) path(id jobspec.RunID) string { return filepath.Join(x.Dir, string(id)+".json") }

// get returns what is remembered of a run, and when it was seen. Whatever cannot be read is unknown.
func (x Index) get(id jobspec.RunID) (Record, time.Time, bool) {
	var e entry
	if statefile.ReadJSON(x.path(id), &e) != nil || e.Format != jobspec.Format || e.Record.ID != id {
		return Record{}, time.Time{}, false
	}
	e.Record.Store = e.Store
	return e.Record, e.Seen, true
}

// put remembers a record as it is now.
func (x Index) put(rec Record, now time.Time) error {
	e := entry{Format: jobspec.Format, Seen: now.UTC(), Store: rec.Store, Record: rec}
	if err := statefile.WriteJSON(x.path(rec.ID), e); err != nil {
		return fmt.Errorf("index run %s: %w", rec.ID, err)
	}
	return nil
}

// settled says whether a run can be taken from the index without asking anybody.
func settled(rec Record) bool {
	return rec.State().Ended() && rec.State() != jobspec.Lost
}
