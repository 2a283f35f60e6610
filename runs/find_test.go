package runs

import (
	"errors"
	"strings"
	"testing"

	"qj/blob"
	"qj/blob/blobtest"
	"qj/jobspec"
)

// Mine, mine, somebody else's, and so on: what a word finds.
func TestFind(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	for _, id := range []jobspec.RunID{
		"ann-1714979000-0000abcd", // shares bcd with the next
		"ann-1714979001-0000ebcd",
		"bob-1714979002-0001abcd", // shares abcd with the first
		"bob-1714979003-00011111",
		"bob-1714979004-00021111",
		"ann-b-1714979005-00033333", // user ann-b, who is not me
	} {
		w.add(t, id)
	}
	w.enter(t, "ann-1714979009-00021111") // never recorded
	w.enter(t, "ann-1714979009-0000dead")

	for word, want := range map[string]string{
		"ann-1714979000-0000abcd": "ann-1714979000-0000abcd",
		"bob-1714979002-0001abcd": "bob-1714979002-0001abcd",
		"abcd":                    "ann-1714979000-0000abcd", // mine first
		"0001abcd":                "bob-1714979002-0001abcd",
		"ebcd":                    "ann-1714979001-0000ebcd",
		"11111":                   "bob-1714979003-00011111",
		"21111":                   "bob-1714979004-00021111", // mine was never recorded
		"33333":                   "ann-b-1714979005-00033333",
		"@last":                   "ann-1714979001-0000ebcd",
		"bcd":                     `"bcd" fits 2 runs: ann-1714979000-0000abcd, ann-1714979001-0000ebcd`,
		"1111":                    `"1111" fits 2 runs: bob-1714979003-00011111, bob-1714979004-00021111`,
		"dead":                    `no run ends in "dead"`,
		"ann-1714979009-0000dead": `no run ends in "ann-1714979009-0000dead"`,
		"99999":                   `no run ends in "99999"`,
		"ABCD":                    `no run ends in "ABCD"`,
		"../abcd":                 `no run ends in "../abcd"`,
		"":                        "the run id is empty",
	} {
		rec, err := s.Find(t.Context(), word)
		got := string(rec.ID)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Find(%q) = %s, want %s", word, got, want)
		}
	}
}

func TestFindErrors(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	if _, err := s.Find(t.Context(), Last); err == nil || err.Error() != "there is no run yet" {
		t.Errorf("no run: %v", err)
	}
	for _, c := range "0123456789" {
		w.add(t, jobspec.RunID("ann-171497900"+string(c)+"-0000"+string(c)+"fff"))
	}
	_, err := s.Find(t.Context(), "fff")
	var ambiguous *AmbiguousError
	if !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != 10 || !strings.HasSuffix(err.Error(), "-00007fff and 2 more") {
		t.Errorf("ten candidates: %v", err)
	}
	_, err = s.Find(t.Context(), "xyz")
	var missing *NotFoundError
	if !errors.As(err, &missing) || missing.Suffix != "xyz" {
		t.Errorf("none: %v", err)
	}
}

// Runs of one second are told apart by the record's finer time, not by the random end of the id.
func TestLastOfOneSecond(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	s.Random = strings.NewReader("\xff\xff\xff\xff" + "\x00\x00\x00\x01" + "\x77\x77\x77\x77")
	for range 3 {
		rec := submit(t, s)
		if last, err := s.Find(t.Context(), Last); err != nil || last.ID != rec.ID {
			t.Errorf("last is %s, want %s: %v", last.ID, rec.ID, err)
		}
		w.clock.pass(1)
	}
}

// What changes a run wants to be told clearly which one.
func TestFindToAct(t *testing.T) {
	w := newWorld(t)
	s := w.service(t)
	w.add(t, "ann-1714979000-0000abcd")
	w.add(t, "bob-1714979003-00011111")
	for word, want := range map[string]string{
		"abcd":                    "ann-1714979000-0000abcd",
		"@last":                   "ann-1714979000-0000abcd",
		"ann-1714979000-0000abcd": "ann-1714979000-0000abcd",
		"bob-1714979003-00011111": "bob-1714979003-00011111",
		"bcd":                     `"bcd" is too short to act on a run: give 4 characters or more`,
		"":                        `"" is too short to act on a run: give 4 characters or more`,
		"11111":                   "run bob-1714979003-00011111 belongs to bob: give its whole id to act on it",
		"ob-1714979003-00011111":  "run bob-1714979003-00011111 belongs to bob: give its whole id to act on it",
		"eeee":                    `no run ends in "eeee"`,
	} {
		rec, err := s.FindToAct(t.Context(), word)
		got := string(rec.ID)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("FindToAct(%q) = %s, want %s", word, got, want)
		}
	}
}

// With several stores, a word finds a run in any; one that does not answer hides no whole id.
func TestFindInSeveralStores(t *testing.T) {
	a, b := newWorld(t), newWorld(t)
	down := errors.New("store is down")
	faulty := &blobtest.Faults{Store: b.store}
	s := a.service(t)
	s.Stores = map[string]blob.Store{"main": a.store, "other": faulty, "alias": a.store}
	a.add(t, "ann-1714979000-0000abcd")
	b.add(t, "ann-1714979001-0000ebcd")
	for word, store := range map[string]string{"abcd": "alias", "ebcd": "other", Last: "other"} {
		if rec, err := s.Find(t.Context(), word); err != nil || rec.Store != store {
			t.Errorf("%s is in %q: %v", word, rec.Store, err)
		}
	}
	faulty.Before = func(blobtest.Op, string) error { return down }
	if rec, err := s.Find(t.Context(), "ann-1714979000-0000abcd"); err != nil || rec.Store != "alias" {
		t.Errorf("a whole id: %v", err)
	}
	for _, word := range []string{"abcd", Last} { // it may be another one's there
		if rec, err := s.Find(t.Context(), word); !errors.Is(err, down) {
			t.Errorf("%s finds %s, %v", word, rec.ID, err)
		}
	}
}

// A record of a later qj is not guessed at, even where it would not decode.
func TestNewerFormat(t *testing.T) {
	const id = "ann-1714979000-0000abcd"
	const want = "the record of " + id + " has format 2, this qj reads up to 1: update qj"
	for _, key := range []string{runKey(id), revisionKey(id, 1)} {
		for name, body := range map[string]any{
			"same fields":  map[string]any{"format": 2, "id": id},
			"other fields": map[string]any{"format": 2, "id": 7, "submitted": "yesterday", "status": []int{1}},
		} {
			w := newWorld(t)
			w.add(t, id)
			w.put(t, key, body)
			s := w.service(t)
			if _, err := s.Find(t.Context(), "abcd"); err == nil || err.Error() != want {
				t.Errorf("%s, %s: %v", key, name, err)
			}
			w.add(t, "ann-1714979001-0000ebcd")
			rows, _, err := s.List(t.Context(), 0, nil)
			if err == nil || !strings.Contains(err.Error(), want) || len(rows) != 1 {
				t.Errorf("a table has %d rows, %v", len(rows), err)
			}
		}
	}
}

func TestDamagedRecord(t *testing.T) {
	const id = "ann-1714979000-0000abcd"
	for body, want := range map[string]string{
		"{":               "parse runs/" + id + "/run.json: unexpected end of JSON input",
		"{}":              "the record of " + id + " has no format",
		`{"format": "1"}`: "parse runs/" + id + "/run.json: ",
		`{"format": 1, "id": "` + id + `", "job": 5}`: "parse runs/" + id + "/run.json: ",
	} {
		w := newWorld(t)
		w.enter(t, id)
		if err := blob.PutBytes(t.Context(), w.store, runKey(id), []byte(body), blob.Replace); err != nil {
			t.Fatal(err)
		}
		if _, err := w.service(t).Find(t.Context(), "abcd"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// What is not ours under ids/ is no run.
func TestForeignEntries(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"ids/readme.txt", "ids/dcba0000-x-nna", "ids/dcba"} {
		w.put(t, key, "x")
	}
	if _, err := w.service(t).Find(t.Context(), "abcd"); err == nil || err.Error() != `no run ends in "abcd"` {
		t.Error(err)
	}
}
