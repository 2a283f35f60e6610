package runs

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"qj/blob/file"
	"qj/jobspec"
)

// childStore names a folder in which this process, a child of the test, submits.
const childStore = "QJ_TEST_STORE"

const (
	children   = 5
	goroutines = 2
	eachTimes  = 5
	idLine     = "submitted "
)

// submitInChild is one of several shells in which runs are submitted, two at a time.
func submitInChild(t *testing.T, dir string) {
	w := newWorld(t)
	var err error
	if w.store, err = file.Open(dir); err != nil {
		t.Fatal(err)
	}
	s := w.service(t)
	s.Random = narrow{rand.Reader, 100} // half of all draws meet a suffix that is taken
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range eachTimes {
				rec, err := s.Submit(t.Context(), request(t, s))
				if err != nil {
					t.Error(err)
				}
				fmt.Println(idLine + rec.ID)
			}
		})
	}
	all.Wait()
}

// 50 submits at once from several processes: 50 ids, 50 suffixes, none lost, none doubled.
func TestSubmitsAtOnce(t *testing.T) {
	if dir := os.Getenv(childStore); dir != "" {
		submitInChild(t, dir)
		return
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var printed []string
	var all sync.WaitGroup
	for range children {
		all.Go(func() {
			child := exec.CommandContext(t.Context(), self, "-test.run=^TestSubmitsAtOnce$")
			child.Env = append(os.Environ(), childStore+"="+dir)
			out, err := child.Output()
			if err != nil {
				t.Errorf("child: %v: %s", err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			for line := range strings.Lines(string(out)) {
				if id, ok := strings.CutPrefix(strings.TrimSpace(line), idLine); ok {
					printed = append(printed, id)
				}
			}
		})
	}
	all.Wait()
	w := newWorld(t)
	if w.store, err = file.Open(dir); err != nil {
		t.Fatal(err)
	}
	const want = children * goroutines * eachTimes
	ids, suffixes := map[string]bool{}, map[string]bool{}
	for _, id := range printed {
		rec := w.load(t, jobspec.RunID(id))
		if rec.Revision.Number != 1 || rec.State() != jobspec.Queued {
			t.Errorf("%s: %+v", id, rec.Revision)
		}
		ids[id], suffixes[rec.ID.Suffix()] = true, true
	}
	entered, err := records{"main", w.store}.find(t.Context(), "")
	if err != nil || len(printed) != want || len(ids) != want || len(suffixes) != want || len(entered) != want {
		t.Errorf("%d printed, %d ids, %d suffixes, %d entered, %v; want %d of each", len(printed), len(ids), len(suffixes), len(entered), err, want)
	}
}

// Many revise one record at once: nobody's change is lost, and numbers have no gap.
func TestRevisionsAtOnce(t *testing.T) {
	const writers, times = 16, 5
	w := newWorld(t)
	rec := submit(t, w.service(t))
	var all sync.WaitGroup
	for range writers {
		s := w.service(t)
		all.Go(func() {
			mine := rec // each starts from what was true long ago
			for range times {
				_, err := s.revise(t.Context(), mine, func(rev *jobspec.Revision) error {
					n, _ := strconv.Atoi(rev.Status.Raw)
					rev.Status.Raw = strconv.Itoa(n + 1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := w.load(t, rec.ID).Revision; got.Status.Raw != strconv.Itoa(writers*times) || got.Number != 1+writers*times {
		t.Errorf("after %d changes: %+v", writers*times, got)
	}
	numbers := w.revisions(t, rec.ID)
	for i, n := range numbers {
		if n != i+1 {
			t.Fatalf("revisions %v", numbers)
		}
	}
}

// revisions lists the numbers of a run's stored revisions.
func (w *world) revisions(t *testing.T, id jobspec.RunID) []int {
	t.Helper()
	var numbers []int
	for key := range w.objects(t) {
		if name, ok := strings.CutPrefix(key, jobspec.RunFolder(id)+"/rev/"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(name, ".json"))
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}
