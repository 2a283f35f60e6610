package runs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"qj/jobspec"
)

// Row is a run in a table.
type Row struct {
	Record
	Stale time.Duration // how old the information is, if its cluster did not answer; else 0
}

// tablePatience is how long a table waits for a cluster before it shows what it knows.
const tablePatience = 2 * time.Second

// List returns my newest runs, oldest first, at most limit of them (0 = all), and how many there are in
// all. keep chooses; runs that it drops do not count for the limit. Stores, clusters and records that
// cannot be read are named by the error, and the other rows are there all the same.
func (s *Service) List(ctx context.Context, limit int, keep func(Record) bool) (rows []Row, total int, err error) {
	all, err := s.ids(ctx, "")
	mine := slices.DeleteFunc(all, func(f found) bool { return f.id.User() != s.User })
	patience := tablePatience
	const batch = 200
	for len(mine) > 0 && (limit == 0 || len(rows) < limit) && ctx.Err() == nil {
		n := min(len(mine), batch)
		if limit > 0 && keep == nil {
			n = min(n, limit-len(rows))
		}
		for n < len(mine) && mine[len(mine)-n-1].id.Time().Equal(mine[len(mine)-n].id.Time()) {
			n++ // only the records tell which one of a second is newer
		}
		newest := mine[len(mine)-n:]
		mine = mine[:len(mine)-n]
		more, failed := s.rows(ctx, newest, patience)
		if failed != nil {
			patience = 0 // who did not answer is not waited for again
			err = cmp.Or(err, failed)
		}
		if keep != nil {
			more = slices.DeleteFunc(more, func(r Row) bool { return !keep(r.Record) })
		}
		rows = append(more, rows...)
	}
	total = len(rows) + len(mine)
	slices.SortStableFunc(rows, func(a, b Row) int { return a.Submitted.Compare(b.Submitted) })
	if limit > 0 && len(rows) > limit {
		rows = rows[len(rows)-limit:]
	}
	return rows, total, cmp.Or(err, ctx.Err())
}

// Known lists the ids of my n newest runs, newest first. It asks stores, no cluster.
func (s *Service) Known(ctx context.Context, n int) ([]jobspec.RunID, error) {
	all, err := s.ids(ctx, "")
	var mine []jobspec.RunID
	for _, f := range slices.Backward(all) {
		if f.id.User() == s.User && len(mine) < n {
			mine = append(mine, f.id)
		}
	}
	return mine, err
}

// rows loads and refreshes a batch.
func (s *Service) rows(ctx context.Context, batch []found, patience time.Duration) ([]Row, error) {
	var recs []Record
	var bad error
	for _, f := range batch {
		rec, err := s.load(ctx, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its submitter died before it was recorded
		}
		if err != nil {
			bad = cmp.Or(bad, err) // the first tells enough
			continue
		}
		recs = append(recs, rec)
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fresh, asked, err := s.refresh(patient, recs)
	rows := make([]Row, len(fresh))
	for i, rec := range fresh {
		rows[i].Record = rec
		if !asked[i] {
			rows[i].Stale = s.Now().Sub(s.LastSeen(rec))
		}
	}
	return rows, errors.Join(bad, err)
}

// LastSeen is when somebody last knew for sure where a run stands.
func (s *Service) LastSeen(rec Record) time.Time {
	_, seen, _ := s.Index.get(rec.ID)
	for _, at := range []time.Time{rec.Submitted, rec.Revision.At} {
		if at.After(seen) {
			seen = at
		}
	}
	return seen
}
