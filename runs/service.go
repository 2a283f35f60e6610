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
	Random  io.Reader
	Warn    func(error) // told of what does not stop the work
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

// ids lists the runs of all stores whose id ends in suffix, oldest first.
func (s *Service) ids(ctx context.Context, suffix string) ([]found, error) {
	var all []found
	for _, name := range s.storeNames() {
		r, err := s.records(name)
		if err != nil {
			return nil, err
		}
		ids, err := r.find(ctx, suffix)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			all = append(all, found{id, name})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		if c := a.id.Time().Compare(b.id.Time()); c != 0 {
			return c
		}
		return strings.Compare(string(a.id), string(b.id))
	})
	return all, nil
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

// Find looks a run up by its whole id, else by a suffix that only one run has: mine come first.
func (s *Service) Find(ctx context.Context, word string) (Record, error) {
	f, err := s.find(ctx, word)
	if err != nil {
		return Record{}, err
	}
	return s.load(ctx, f)
}

// actingSuffix is the shortest suffix that may stop or enter a run.
const actingSuffix = 4

// FindToAct is Find for what changes a run: a short suffix, or one of somebody else's run, will not do.
func (s *Service) FindToAct(ctx context.Context, word string) (Record, error) {
	if word != Last && len(word) < actingSuffix {
		return Record{}, fmt.Errorf("%q is too short to act on a run: give %d characters or more", word, actingSuffix)
	}
	f, err := s.find(ctx, word)
	if err != nil {
		return Record{}, err
	}
	if f.id.User() != s.User && string(f.id) != word {
		return Record{}, fmt.Errorf("run %s belongs to %s: give its whole id to act on it", f.id, f.id.User())
	}
	return s.load(ctx, f)
}

func (s *Service) find(ctx context.Context, word string) (found, error) {
	if word == "" {
		return found{}, errors.New("the run id is empty")
	}
	suffix := word
	if word == Last {
		suffix = ""
	}
	all, err := s.ids(ctx, suffix)
	if err != nil {
		return found{}, err
	}
	if i := slices.IndexFunc(all, func(f found) bool { return string(f.id) == word }); i >= 0 {
		return all[i], nil
	}
	mine := slices.DeleteFunc(slices.Clone(all), func(f found) bool { return f.id.User() != s.User })
	if word == Last {
		return s.newest(ctx, mine)
	}
	if len(mine) > 0 {
		all = mine
	}
	all, err = s.onlyRecorded(ctx, all)
	switch {
	case err != nil:
		return found{}, err
	case len(all) == 0:
		return found{}, &NotFoundError{word}
	case len(all) == 1:
		return all[0], nil
	}
	e := &AmbiguousError{Suffix: word}
	for _, f := range all {
		e.Candidates = append(e.Candidates, f.id)
	}
	return found{}, e
}

// newest is the last of my runs. Ids of one second are told apart by the record's finer time.
func (s *Service) newest(ctx context.Context, mine []found) (found, error) {
	var best found
	var at time.Time
	for _, f := range slices.Backward(mine) {
		if !at.IsZero() && f.id.Time().Before(best.id.Time()) {
			break
		}
		rec, err := s.load(ctx, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its submitter died before it was recorded
		}
		if err != nil {
			return found{}, err
		}
		if rec.Submitted.After(at) {
			best, at = f, rec.Submitted
		}
	}
	if at.IsZero() {
		return found{}, errors.New("there is no run yet")
	}
	return best, nil
}

// onlyRecorded drops ids whose submitter died before the record was written. It looks only when several
// are left to choose from.
func (s *Service) onlyRecorded(ctx context.Context, all []found) ([]found, error) {
	if len(all) < 2 {
		return all, nil
	}
	var kept []found
	for _, f := range all {
		_, err := s.load(ctx, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		kept = append(kept, f)
	}
	return kept, nil
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
