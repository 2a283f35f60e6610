package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"qj/blob"
	"qj/jobspec"
	"qj/logsync"
	"qj/statefile"
	"qj/test/smalldisk"
)

// A full disk under the node's work folder: the ranks do not notice, what fits is kept and shipped, and
// the end of the run is known.
func TestFullWorkFolder(t *testing.T) {
	if !smalldisk.Inside(t) {
		return
	}
	r := newRun(t, rankCommand("flood", fmt.Sprint(8<<20))...)
	r.launch.Job.Layout.ProcsPerNode = 2
	smalldisk.Mount(t, r.work(0), "3m")
	n := r.start()
	if code := n.wait(); code != 0 {
		t.Errorf("exit code %d: the disk stopped a rank", code)
	}
	status := n.wantEnd(jobspec.Completed, "")
	if status.LogsComplete {
		t.Error("logs with a gap are said to be complete")
	}
	logs := r.logs()
	wrote, kept := strings.Repeat(strings.Repeat("y", 1023)+"\n", 8<<10), 0
	for rank := range 2 {
		head, _, _ := strings.Cut(logs[fmt.Sprintf("0/rank-%d", rank)], "\nqj: ")
		if !strings.HasPrefix(wrote, head) {
			t.Errorf("the %d bytes that were kept of rank %d are not what it wrote", len(head), rank)
		}
		kept += len(head)
	}
	if kept < 2<<20 {
		t.Errorf("of 3 MB only %d bytes were used", kept)
	}
}

func TestCopyOverAGap(t *testing.T) {
	if !smalldisk.Inside(t) {
		return
	}
	work := filepath.Join(t.TempDir(), "work")
	smalldisk.Mount(t, work, "256k")
	ballast := filepath.Join(work, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 128<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	store := &gateStore{Store: newRun(t).store}
	s := &streams{dir: filepath.Join(work, "streams"), store: store, run: "runs/x"}
	st, err := s.start(t.Context(), logsync.Stream{Name: "rank-0"}, true)
	if err != nil {
		t.Fatal(err)
	}
	pipe, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	lost, copied := make(chan error, 10), make(chan struct{})
	go func() {
		defer close(copied)
		st.copyFrom(pipe, func(err error) { lost <- err })
	}()
	write := func(p []byte) {
		t.Helper()
		if _, err := writer.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	write(bytes.Repeat([]byte("a"), 300<<10))
	if err := within(t, "the loss to be told", lost); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "0/rank-0") {
		t.Errorf("told %v", err)
	}
	write(bytes.Repeat([]byte("b"), 300<<10))
	await(t, "the pipe to be empty", func() bool { return pending(t, pipe) == 0 })
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	write([]byte("the end"))
	writer.Close()
	within(t, "the copying", copied)
	lengths, complete, spent := s.finish(t.Context())
	if complete || !spent {
		t.Errorf("complete: %v, spent: %v; want false and true", complete, spent)
	}
	body, err := os.ReadFile(streamPath(s.dir, st.id))
	if err != nil || int64(len(body)) != lengths["0/rank-0"] {
		t.Fatalf("%d bytes of %v, %v", len(body), lengths, err)
	}
	m := regexp.MustCompile(`^(a+)\nqj: ([0-9]+) bytes of output are missing here: .*no space left on device\n(b*)the end$`).FindSubmatch(body)
	if m == nil {
		t.Fatalf("the stream is not what was kept, a note, and the rest: …%q", strings.TrimLeft(string(body), "a"))
	}
	if missing := fmt.Sprint(600<<10 - len(m[1]) - len(m[3])); missing != string(m[2]) || missing != fmt.Sprint(st.lost) {
		t.Errorf("%s bytes are missing, the stream says %s, the record %d", missing, m[2], st.lost)
	}
}

// pending is how much a pipe holds.
func pending(t *testing.T, pipe *os.File) (n int32) {
	t.Helper()
	conn, err := pipe.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&n)))
		if errno != 0 {
			t.Error(errno)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// gateStore is a store that may fail, or hang without regard for any context.
type gateStore struct {
	blob.Store
	failing atomic.Bool
	refused chan struct{} // nil, or told of puts that failed
	hanging chan struct{} // nil, or until when puts hang
}

func (s *gateStore) Put(ctx context.Context, key string, body io.ReadSeeker, mode blob.Mode) error {
	if s.failing.Load() {
		select {
		case s.refused <- struct{}{}:
		default:
		}
		return fmt.Errorf("put %s: %w", key, fs.ErrPermission)
	}
	if s.hanging != nil {
		<-s.hanging
	}
	return s.Store.Put(ctx, key, body, mode)
}

func TestStoreThatIsBrokenDoesNotStopRanks(t *testing.T) {
	r := newRun(t, rankCommand("print", "0")...)
	mend := r.breakLogs()
	n := r.start()
	n.await(jobspec.Finishing) // the ranks are through
	if left := r.left(); len(left) > 0 {
		t.Errorf("ranks %v wait for the store", left)
	}
	mend()
	if code := n.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	logs := r.logs()
	r.wantLengths(n.wantEnd(jobspec.Completed, ""), logs)
	if logs["0/rank-0"] != string(sample("0")) {
		t.Error("output of rank 0 is not what it wrote")
	}
}

func TestStreamsOfABrokenStore(t *testing.T) {
	for _, fault := range []string{"fails", "hangs"} {
		t.Run(fault, func(t *testing.T) {
			store := &gateStore{Store: newRun(t).store}
			if fault == "hangs" {
				store.hanging = make(chan struct{})
				defer close(store.hanging)
			}
			store.failing.Store(fault == "fails")
			s := &streams{dir: t.TempDir(), store: store, run: "runs/x"}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			for _, name := range []string{"rank-0", "rank-1"} {
				st, err := s.start(ctx, logsync.Stream{Name: name}, true)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(st, "output"); err != nil {
					t.Fatal(err)
				}
			}
			lengths, complete, spent := s.finish(ctx)
			if complete || spent || lengths["0/rank-0"] != 6 || lengths["0/rank-1"] != 6 {
				t.Errorf("lengths %v, complete: %v, spent: %v", lengths, complete, spent)
			}
			ids, err := s.onDisk()
			if want := []logsync.Stream{{Name: "rank-0"}, {Name: "rank-1"}}; err != nil || !slices.Equal(ids, want) {
				t.Errorf("on disk are %v, %v; want %v", ids, err, want)
			}
		})
	}
}

func TestFinalReportOfABrokenStore(t *testing.T) {
	for _, fault := range []string{"fails", "hangs"} {
		t.Run(fault, func(t *testing.T) {
			store := &gateStore{Store: newRun(t).store}
			if fault == "hangs" {
				store.hanging = make(chan struct{})
				defer close(store.hanging)
			}
			store.failing.Store(fault == "fails")
			work := t.TempDir()
			reporter := newReporter(store, facts{Work: work}, someLaunch)
			if err := reporter.state(jobspec.Running, jobspec.Reason{}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- reporter.final(ctx, jobspec.Status{State: jobspec.Completed}) }()
			if err := within(t, "the final report", ended); err == nil {
				t.Error("a report that nobody stored is said to be there")
			}
			var report jobspec.Report
			if err := statefile.ReadJSON(filepath.Join(work, jobspec.ReportFile), &report); err != nil || report.Status.State != jobspec.Completed {
				t.Errorf("the node's own file says %+v, %v", report.Status, err)
			}
		})
	}
}

func TestFinalReportWaitsForTheStore(t *testing.T) {
	store := &gateStore{Store: newRun(t).store, refused: make(chan struct{}, 1)}
	store.failing.Store(true)
	reporter := newReporter(store, facts{Work: t.TempDir()}, someLaunch)
	ended := make(chan error, 1)
	go func() { ended <- reporter.final(t.Context(), jobspec.Status{State: jobspec.Completed}) }()
	within(t, "a put that fails", store.refused)
	store.failing.Store(false)
	if err := within(t, "the final report", ended); err != nil {
		t.Error(err)
	}
	if body, err := blob.ReadAll(t.Context(), store, "runs/tester-1-0000000a/nodes/0.json", 1<<20); !strings.Contains(string(body), "completed") {
		t.Errorf("the store has %s, %v", body, err)
	}
}

// Streams are found whatever the folder is called: what is not found is not saved.
func TestStreamsInAStrangeFolder(t *testing.T) {
	s := &streams{dir: filepath.Join(t.TempDir(), "[a*"), store: newRun(t).store, run: "runs/x"}
	if ids, err := s.onDisk(); len(ids) != 0 || err != nil {
		t.Errorf("before any: %v, %v", ids, err)
	}
	want := logsync.Stream{Attempt: 2, Name: "rank-0"}
	if _, err := s.start(t.Context(), want, false); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.onDisk(); err != nil || !slices.Equal(ids, []logsync.Stream{want}) {
		t.Errorf("found %v, %v; want %v", ids, err, want)
	}
	s.finish(t.Context())
}

// A writer that nobody can end does not keep the node, and what it wrote before is kept.
func TestCopyEndsAtTheDeadline(t *testing.T) {
	s := &streams{dir: t.TempDir(), store: newRun(t).store, run: "runs/x"}
	st, err := s.start(t.Context(), logsync.Stream{Name: "rank-0"}, false)
	if err != nil {
		t.Fatal(err)
	}
	pipe, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := io.WriteString(writer, "still in the pipe"); err != nil {
		t.Fatal(err)
	}
	if err := pipe.SetReadDeadline(time.Now().Add(-time.Second)); err != nil { // a slow disk: it passed long ago
		t.Fatal(err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		st.copyFrom(pipe, func(err error) { t.Errorf("lost: %v", err) })
	}()
	within(t, "the copying", copied)
	if body, err := os.ReadFile(streamPath(s.dir, st.id)); string(body) != "still in the pipe" {
		t.Errorf("kept %q, %v", body, err)
	}
	s.finish(t.Context())
}
