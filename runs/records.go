package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"qj/blob"
	"qj/jobspec"
)

// Record is all that is kept of one run: as it was submitted, and its newest revision.
type Record struct {
	jobspec.Run
	Revision jobspec.Revision
	Store    string `json:"-"` // name of the store where the record lies
}

// State is where the run stands as far as the record knows.
func (r Record) State() jobspec.State {
	if r.Revision.Number == 0 {
		return jobspec.Submitting
	}
	return r.Revision.Status.State
}

// records are the runs of one store.
type records struct {
	name  string
	store blob.Store
}

const maxRecord = 4 << 20 // bytes of one JSON document

func runKey(id jobspec.RunID) string { return jobspec.RunFolder(id) + "/run.json" }

func revisionKey(id jobspec.RunID, number int) string {
	return fmt.Sprintf("%s/rev/%08d.json", jobspec.RunFolder(id), number)
}

const idFolder = "ids/"

// create writes a new run down. fs.ErrExist means that the id, or its suffix, is taken: five characters
// have to be enough to come back. The id is entered first, then its suffix looked up, so that of two who
// draw the same at once at least one sees the other. A submitter that dies before the record is written
// leaves an id without one, which is no run.
func (r records) create(ctx context.Context, run jobspec.Run) error {
	entry := idFolder + run.ID.Reversed()
	if err := blob.PutBytes(ctx, r.store, entry, nil, blob.IfAbsent); err != nil {
		return fmt.Errorf("record run %s: %w", run.ID, err)
	}
	alike, err := r.find(ctx, run.ID.Suffix())
	if err != nil {
		return fmt.Errorf("record run %s: %w", run.ID, err)
	}
	if len(alike) > 1 {
		_ = r.store.Delete(ctx, entry) // left behind, it does no harm
		return fmt.Errorf("record run %s: the suffix is taken: %w", run.ID, fs.ErrExist)
	}
	body, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return fmt.Errorf("record run %s: %w", run.ID, err)
	}
	if err := blob.PutBytes(ctx, r.store, runKey(run.ID), body, blob.IfAbsent); err != nil {
		return fmt.Errorf("record run %s: %w", run.ID, err)
	}
	return nil
}

// find lists the ids that end in suffix; "" lists all. It is one listing of the store.
func (r records) find(ctx context.Context, suffix string) ([]jobspec.RunID, error) {
	var ids []jobspec.RunID
	for info, err := range r.store.List(ctx, idFolder+jobspec.Reverse(suffix), "") {
		if err != nil {
			return nil, fmt.Errorf("list runs of store %s: %w", r.name, err)
		}
		id, err := jobspec.ParseRunID(jobspec.Reverse(strings.TrimPrefix(info.Key, idFolder)))
		if err == nil { // whatever else lies there is not ours
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// load reads a run and its newest revision. fs.ErrNotExist means that there is no such run.
func (r records) load(ctx context.Context, id jobspec.RunID) (Record, error) {
	rec := Record{Store: r.name}
	if err := r.get(ctx, id, runKey(id), &rec.Run); err != nil {
		return Record{}, err
	}
	newest := ""
	for info, err := range r.store.List(ctx, jobspec.RunFolder(id)+"/rev/", "") {
		if err != nil {
			return Record{}, fmt.Errorf("list revisions of %s: %w", id, err)
		}
		newest = info.Key
	}
	if newest == "" {
		rec.Revision.Status.State = jobspec.Submitting
		return rec, nil
	}
	if err := r.get(ctx, id, newest, &rec.Revision); err != nil {
		return Record{}, err
	}
	return rec, nil
}

// get reads one document of a run. Its format is looked at first: a newer one may not even decode.
func (r records) get(ctx context.Context, id jobspec.RunID, key string, into any) error {
	body, err := blob.ReadAll(ctx, r.store, key, maxRecord)
	if err != nil {
		return err
	}
	var document struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return fmt.Errorf("parse %s: %w", key, err)
	}
	if err := jobspec.CheckFormat("the record of "+string(id), document.Format); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("parse %s: %w", key, err)
	}
	return nil
}

// errNoChange is returned by a change that finds nothing to do.
var errNoChange = errors.New("no change")

// revise adds a revision: change is applied to the newest one, again if somebody else was faster.
func (r records) revise(ctx context.Context, rec Record, change func(*jobspec.Revision) error) (Record, error) {
	const tries = 100 // every lost race is progress of somebody else
	for range tries {
		next := rec.Revision
		if err := change(&next); err != nil {
			if errors.Is(err, errNoChange) {
				return rec, nil
			}
			return rec, err
		}
		next.Format, next.Number = jobspec.Format, rec.Revision.Number+1
		body, err := json.MarshalIndent(next, "", "  ")
		if err != nil {
			return rec, fmt.Errorf("revise run %s: %w", rec.ID, err)
		}
		err = blob.PutBytes(ctx, r.store, revisionKey(rec.ID, next.Number), body, blob.IfAbsent)
		if err == nil {
			rec.Revision = next
			return rec, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return rec, fmt.Errorf("revise run %s: %w", rec.ID, err)
		}
		if rec, err = r.load(ctx, rec.ID); err != nil {
			return rec, err
		}
	}
	return rec, fmt.Errorf("revise run %s: lost %d races in a row", rec.ID, tries)
}
