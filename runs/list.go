package runs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"
)

// Row is a run in a table.
type Row struct {
	Record
	Stale time.Duration // how old the information is, if its cluster did not answer; else 0
}

// tablePatience is how long a table waits for a cluster before it shows what it knows.
const tablePatience = 2 * time.Second

// List returns my newest runs, oldest first, at most limit of them (0 = all), and how many there are in
// all. keep chooses; runs that it drops do not count for the limit. Clusters that do not answer in time
// are named by the error, and the rows are there all the same.
func (s *Service) List(ctx context.Context, limit int, keep func(Record) bool) (rows []Row, total int, err error) {
	all, err := s.ids(ctx, "")
	if err != nil {
		return nil, 0, err
	}
	mine := slices.DeleteFunc(all, func(f found) bool { return f.id.User() != s.User })
	var failed []error
	const batch = 200
	for len(mine) > 0 && (limit == 0 || len(rows) < limit) {
		n := min(len(mine), batch)
		if limit > 0 && keep == nil {
			n = min(n, limit-len(rows))
		}
		newest := mine[len(mine)-n:]
		mine = mine[:len(mine)-n]
		more, err := s.rows(ctx, newest)
		failed = append(failed, err)
		if keep != nil {
			more = slices.DeleteFunc(more, func(r Row) bool { return !keep(r.Record) })
		}
		rows = append(more, rows...)
	}
	if limit > 0 && len(rows) > limit {
		rows = rows[len(rows)-limit:]
	}
	total = len(rows) + len(mine)
	slices.SortStableFunc(rows, func(a, b Row) int { return a.Submitted.Compare(b.Submitted) })
	return rows, total, errors.Join(failed...)
}

// rows loads and refreshes a batch.
func (s *Service) rows(ctx context.Context, batch []found) ([]Row, error) {
	var recs []Record
	var seen []time.Time
	for _, f := range batch {
		_, at, _ := s.Index.get(f.id)
		rec, err := s.load(ctx, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its submitter died before it was recorded
		}
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
		seen = append(seen, at)
	}
	patient, cancel := context.WithTimeout(ctx, tablePatience)
	defer cancel()
	fresh, err := s.Refresh(patient, recs)
	rows := make([]Row, len(fresh))
	for i, rec := range fresh {
		rows[i].Record = rec
		if err != nil && !settled(rec) && !seen[i].IsZero() {
			rows[i].Stale = s.Now().Sub(seen[i])
		}
	}
	return rows, err
}
