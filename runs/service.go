// Package runs is what qj does with runs: submit, find, observe, abort, resubmit. It keeps their records
// in blob stores, where any machine finds them, and asks backends for the rest. The command line calls
// it; so could a server. It prints nothing and knows no flag.
package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"qj/backends"
	"qj/blob"
	"qj/jobspec"
)

// Cluster is one configured cluster, ready to be talked to.
type Cluster struct {
	Name    string
	Type    string // of the backend
	Backend backends.Backend
	Store   string // name of its store
}

// Service works on the runs of all configured clusters and stores.
type Service struct {
	Stores  map[string]blob.Store
	Cluster func(name string) (Cluster, error) // opened when first needed
	Index   Index
	User    string // the user part of my ids
	By      string // user@host, for the record
	Now     func() time.Time
	Random  io.Reader   // for ids; keys take theirs from the system, whatever a test wants
	Warn    func(error) // told of what does not stop the work, by several goroutines
}

func (s *Service) records(store string) (records, error) {
	b := s.Stores[store]
	if b == nil {
		return records{}, fmt.Errorf("store %q is not configured here", store)
	}
	return records{name: store, store: b}, nil
}

// storeNames lists the stores in a stable order.
func (s *Service) storeNames() []string {
	names := make([]string, 0, len(s.Stores))
	for name := range s.Stores {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// found is an id and the store where its record lies.
type found struct {
	id    jobspec.RunID
	store string
}

// ids lists the runs of all stores whose id ends in suffix, oldest first. With an error, they are those of
// the stores that answered.
func (s *Service) ids(ctx context.Context, suffix string) ([]found, error) {
	var all []found
	var failed []error
	for _, name := range s.storeNames() {
		r, err := s.records(name)
		if err != nil {
			return nil, err
		}
		ids, err := r.find(ctx, suffix)
		failed = append(failed, err)
		for _, id := range ids {
			all = append(all, found{id, name})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int {
		if c := a.id.Time().Compare(b.id.Time()); c != 0 {
			return c
		}
		return strings.Compare(string(a.id), string(b.id))
	})
	all = slices.CompactFunc(all, func(a, b found) bool { return a.id == b.id }) // two names of one store
	return all, errors.Join(failed...)
}

// AmbiguousError is a suffix that fits several runs.
type AmbiguousError struct {
	Suffix     string
	Candidates []jobspec.RunID
}

func (e *AmbiguousError) Error() string {
	const show = 8
	names := make([]string, 0, show)
	for _, id := range e.Candidates[:min(show, len(e.Candidates))] {
		names = append(names, string(id))
	}
	more := ""
	if n := len(e.Candidates) - show; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%q fits %d runs: %s%s", e.Suffix, len(e.Candidates), strings.Join(names, ", "), more)
}

// NotFoundError is a suffix that fits no run.
type NotFoundError struct{ Suffix string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("no run ends in %q", e.Suffix) }

// Last is the word for my newest run.
const Last = "@last"

// actingSuffix is the shortest suffix that may stop or enter a run.
const actingSuffix = 4

// FindToAct is Find for what changes a run: a short suffix, or one of somebody else's run, will not do.
func (s *Service) FindToAct(ctx context.Context, word string) (Record, error) {
	if word != Last && len(word) < actingSuffix {
		return Record{}, fmt.Errorf("%q is too short to act on a run: give %d characters or more", word, actingSuffix)
	}
	rec, err := s.Find(ctx, word)
	if err != nil {
		return Record{}, err
	}
	if rec.ID.User() != s.User && string(rec.ID) != word {
		return Record{}, fmt.Errorf("run %s belongs to %s: give its whole id to act on it", rec.ID, rec.ID.User())
	}
	return rec, nil
}

// Find looks a run up by its whole id, else by a suffix that only one run has: mine come first.
func (s *Service) Find(ctx context.Context, word string) (Record, error) {
	if word == "" {
		return Record{}, errors.New("the run id is empty")
	}
	suffix := word
	if word == Last {
		suffix = ""
	}
	all, err := s.ids(ctx, suffix)
	exact := slices.DeleteFunc(slices.Clone(all), func(f found) bool { return string(f.id) != word })
	if err != nil && len(exact) == 0 {
		return Record{}, err // a store that does not answer may hold another one
	}
	mine := slices.DeleteFunc(slices.Clone(all), func(f found) bool { return f.id.User() != s.User })
	if word == Last {
		return s.newest(ctx, mine)
	}
	for _, group := range [][]found{exact, mine, all} {
		recs, err := s.recorded(ctx, group)
		if err != nil {
			return Record{}, err
		}
		if len(recs) == 1 {
			return recs[0], nil
		}
		if len(recs) > 1 {
			e := &AmbiguousError{Suffix: word}
			for _, rec := range recs {
				e.Candidates = append(e.Candidates, rec.ID)
			}
			return Record{}, e
		}
	}
	return Record{}, &NotFoundError{word}
}

// newest is the last of my runs. Ids of one second are told apart by the record's finer time.
func (s *Service) newest(ctx context.Context, mine []found) (Record, error) {
	var best Record
	for _, f := range slices.Backward(mine) {
		if best.ID != "" && f.id.Time().Before(best.ID.Time()) {
			break
		}
		recs, err := s.recorded(ctx, []found{f})
		if err != nil {
			return Record{}, err
		}
		if len(recs) > 0 && recs[0].Submitted.After(best.Submitted) {
			best = recs[0]
		}
	}
	if best.ID == "" {
		return Record{}, errors.New("there is no run yet")
	}
	return best, nil
}

// recorded loads runs, without those whose submitter died before the record was written.
func (s *Service) recorded(ctx context.Context, ids []found) ([]Record, error) {
	var recs []Record
	for _, f := range ids {
		rec, err := s.load(ctx, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
	return recs, nil
}

// load reads a record, from the index if it cannot have changed since.
func (s *Service) load(ctx context.Context, f found) (Record, error) {
	if rec, _, ok := s.Index.get(f.id); ok && settled(rec) && rec.Store == f.store {
		return rec, nil
	}
	r, err := s.records(f.store)
	if err != nil {
		return Record{}, err
	}
	rec, err := r.load(ctx, f.id)
	if err == nil && settled(rec) {
		s.remember(rec)
	}
	return rec, err
}

// remember updates the index. It is a convenience: failing to is no failure.
func (s *Service) remember(rec Record) {
	if err := s.Index.put(rec, s.Now()); err != nil {
		s.Warn(err)
	}
}

// revise changes a record in its store.
func (s *Service) revise(ctx context.Context, rec Record, change func(*jobspec.Revision) error) (Record, error) {
	r, err := s.records(rec.Store)
	if err != nil {
		return rec, err
	}
	return r.revise(ctx, rec, func(rev *jobspec.Revision) error {
		if err := change(rev); err != nil {
			return err
		}
		rev.At, rev.By = s.Now().UTC(), s.By
		return nil
	})
}
