//go:build linux

package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"qj/jobspec"
)

const someRun = jobspec.RunID("tester-1-0000000a")

// claimed is how a claim ended.
type claimEnd struct {
	ids   []string
	files []*os.File
	err   error
}

// claiming claims in the background, and returns what it says while it waits, and its end.
func claiming(ctx context.Context, s jobspec.Slots, run jobspec.RunID) (says <-chan string, ended <-chan claimEnd) {
	texts, end := make(chan string, 1000), make(chan claimEnd, 1)
	list := func(context.Context) ([]slot, error) { return numbered(s.Count), nil }
	go func() {
		ids, files, err := claim(ctx, s, run, list, func(text string) { texts <- text })
		end <- claimEnd{ids, files, err}
	}()
	return texts, end
}

// take claims what is free.
func take(t *testing.T, s jobspec.Slots) (ids []string, free func()) {
	t.Helper()
	_, ended := claiming(t.Context(), s, someRun)
	end := within(t, "a claim", ended)
	if end.err != nil {
		t.Fatal(end.err)
	}
	free = func() {
		for _, f := range end.files {
			f.Close()
		}
	}
	t.Cleanup(free)
	return end.ids, free
}

// within receives, and fails the test if nothing comes.
func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
		panic("unreachable")
	}
}

func TestClaimIsFirstComeFirstServed(t *testing.T) {
	s := jobspec.Slots{Dir: t.TempDir(), Need: 2, Count: 2, Ticket: "00"}
	_, free := take(t, s)
	served := make(chan int, 5)
	for i := range 5 {
		s.Ticket = fmt.Sprintf("%02d", i+1)
		says, ended := claiming(t.Context(), s, someRun)
		want := "waits for 2 slots, 0 free, the others are used by 0000a"
		if i > 0 {
			want = "waits for 2 slots, " + ordinal(i+1) + " in the queue"
		}
		if said := within(t, "what the claim waits for", says); said != want {
			t.Errorf("claim %d says %q, want %q", i, said, want)
		}
		go func() {
			end := <-ended
			served <- i
			for _, f := range end.files {
				f.Close()
			}
		}()
	}
	free()
	for want := range 5 {
		if got := within(t, "the next of the queue", served); got != want {
			t.Errorf("claim %d was served, want %d", got, want)
		}
	}
	wantEmpty(t, filepath.Join(s.Dir, "queue"))
}

// A small run never steps before a large one that came first.
func TestSmallClaimWaitsBehindLargeOne(t *testing.T) {
	s := jobspec.Slots{Dir: t.TempDir(), Need: 1, Count: 2, Ticket: "0"}
	_, free := take(t, s)
	large, small := s, s
	large.Ticket, large.Need, small.Ticket = "1", 2, "2"
	says, largeEnd := claiming(t.Context(), large, someRun)
	if said := within(t, "the large claim", says); said != "waits for 2 slots, 1 free, the others are used by 0000a" {
		t.Errorf("the large claim says %q", said)
	}
	says, smallEnd := claiming(t.Context(), small, someRun)
	if said := within(t, "the small claim", says); said != "waits for 1 slot, 2nd in the queue" {
		t.Errorf("the small claim says %q", said)
	}
	free()
	end := within(t, "the large claim", largeEnd)
	if !slices.Equal(end.ids, []string{"0", "1"}) {
		t.Errorf("the large claim got %q, %v", end.ids, end.err)
	}
	select {
	case end := <-smallEnd:
		t.Errorf("the small claim got %q beside the large one", end.ids)
	default:
	}
	for _, f := range end.files {
		f.Close()
	}
	if end := within(t, "the small claim", smallEnd); len(end.ids) != 1 || end.err != nil {
		t.Errorf("the small claim got %q, %v", end.ids, end.err)
	}
}

// Submitted first and started last: both would wait for what the other one holds already.
func TestClaimsThatOvertakeDoNotDeadlock(t *testing.T) {
	s := jobspec.Slots{Dir: t.TempDir(), Need: 1, Count: 2, Ticket: "0"}
	_, free := take(t, s)
	late, early := s, s
	late.Ticket, late.Need = "2", 2
	early.Ticket, early.Need = "1", 2
	says, lateEnd := claiming(t.Context(), late, someRun)
	within(t, "the late claim", says) // it holds a slot now
	says, earlyEnd := claiming(t.Context(), early, someRun)
	within(t, "the early claim", says)
	free()
	end := within(t, "the early claim", earlyEnd)
	if len(end.ids) != 2 {
		t.Fatalf("the early claim got %q, %v", end.ids, end.err)
	}
	for _, f := range end.files {
		f.Close()
	}
	if end := within(t, "the late claim", lateEnd); len(end.ids) != 2 {
		t.Errorf("the late claim got %q, %v", end.ids, end.err)
	}
}

func TestClaimOfTooMany(t *testing.T) {
	s := jobspec.Slots{Dir: t.TempDir(), Need: 3, Count: 2, Ticket: "1"}
	_, ended := claiming(t.Context(), s, someRun)
	end := within(t, "the refusal", ended)
	if end.err == nil || end.err.Error() != "needs 3 slots, this machine has 2" {
		t.Errorf("got %q, %v", end.ids, end.err)
	}
	wantEmpty(t, filepath.Join(s.Dir, "queue"))
}

func TestClaimEndsWithItsContext(t *testing.T) {
	s := jobspec.Slots{Dir: t.TempDir(), Need: 1, Count: 1, Ticket: "0"}
	_, free := take(t, s)
	stop := errors.New("stop")
	for _, ticket := range []string{"1", "2"} { // the second one waits in the kernel, for the first
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		s.Ticket = ticket
		says, ended := claiming(ctx, s, someRun)
		within(t, "the claim to wait", says)
		if ticket == "2" {
			cancel(stop)
			if end := within(t, "the claim's end", ended); !errors.Is(end.err, stop) {
				t.Errorf("claim ended with %v, want %v", end.err, stop)
			}
		}
	}
	free()
}

// Who is killed in the queue, or with slots in hand, is in nobody's way.
func TestKilledRunsLeaveTheirPlaces(t *testing.T) {
	dir := t.TempDir()
	var nodes []*testNode
	for i := range 3 {
		r := newRun(t, rankCommand("sleep")...)
		r.launch.Slots = &jobspec.Slots{Dir: dir, Need: 1, Count: 1, Ticket: fmt.Sprint(i)}
		n := r.start()
		n.await([]jobspec.State{jobspec.Running, jobspec.Queued, jobspec.Queued}[i])
		nodes = append(nodes, n)
	}
	holder, waiter, last := nodes[0], nodes[1], nodes[2]
	if reason := waiter.report().Status.Reason; reason.Code != jobspec.ReasonWaiting || !strings.HasSuffix(reason.Text, "used by "+holder.launch.Run.Suffix()) {
		t.Errorf("the first of the queue waits for %q (%s), want it to name %s", reason.Text, reason.Code, holder.launch.Run.Suffix())
	}
	kill(t, waiter)
	await(t, "the last one to move up", func() bool {
		return strings.HasSuffix(last.report().Status.Reason.Text, "used by "+holder.launch.Run.Suffix())
	})
	kill(t, holder)
	last.await(jobspec.Running)
}

// kill ends both processes of a node at once, as the machine's memory killer might.
func kill(t *testing.T, n *testNode) {
	t.Helper()
	pair := n.processes()
	for _, id := range []interface{ Signal(syscall.Signal) error }{pair.Guard, pair.Lead} {
		if err := id.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []interface{ Signal(syscall.Signal) error }{pair.Guard, pair.Lead} {
		if err := id.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("%s holds %v (%v), want nothing", dir, entries, err)
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		if got := ordinal(n); got != want {
			t.Errorf("ordinal(%d) = %s, want %s", n, got, want)
		}
	}
}

// fakeNvidia puts a program of that name first in the PATH.
func fakeNvidia(t *testing.T, r *run, gpus, apps string) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in *query-gpu*) printf '%s';; *) printf '%s';; esac\n", gpus, apps)
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r.environ = append(r.environ, "PATH="+dir+":"+os.Getenv("PATH"))
}

const fourGPUs = `0, GPU-a\n1, GPU-b\n2, GPU-c\n3, GPU-d\n`

func TestRanksGetTheGPUsTheyHold(t *testing.T) {
	tests := []struct{ name, visible, apps, want string }{
		{"the first ones", "", "", "0,1"},
		{"not the busy ones", "", `GPU-a, 4711\nGPU-c, 4712\n`, "1,3"},
		{"only the visible ones", "3,1", "", "1,3"},
		{"visible by name", "GPU-c, GPU-d", "", "2,3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRun(t, "/bin/sh", "-c", `printf %s "$CUDA_VISIBLE_DEVICES"`)
			r.launch.Job.Layout = jobspec.Layout{NumGPU: 2, Nodes: 1, ProcsPerNode: 2, GPUsPerNode: 2}
			r.launch.Slots = &jobspec.Slots{Dir: t.TempDir(), Ticket: "1", Need: 2, GPUs: true}
			fakeNvidia(t, r, fourGPUs, test.apps)
			if test.visible != "" {
				r.environ = append(r.environ, "CUDA_VISIBLE_DEVICES="+test.visible)
			}
			n := r.start()
			if code := n.wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			logs := r.logs()
			for _, stream := range []string{"0/rank-0", "0/rank-1"} {
				if logs[stream] != test.want {
					t.Errorf("%s: CUDA_VISIBLE_DEVICES is %q, want %q", stream, logs[stream], test.want)
				}
			}
		})
	}
}

func TestRunWaitsForABusyGPU(t *testing.T) {
	r := newRun(t, "true")
	r.launch.Job.Layout.GPUsPerNode = 1
	r.launch.Slots = &jobspec.Slots{Dir: t.TempDir(), Ticket: "1", Need: 1, GPUs: true}
	fakeNvidia(t, r, `0, GPU-a\n`, `GPU-a, 4711\n`)
	n := r.start()
	report := n.await(jobspec.Queued)
	if want := "waits for 1 GPU, 0 free, the others are used by process 4711 (no run of qj)"; report.Status.Reason.Text != want {
		t.Errorf("it says %q, want %q", report.Status.Reason.Text, want)
	}
	if err := n.guard.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := n.wait(); code != exitPreempted {
		t.Errorf("exit code %d, want %d", code, exitPreempted)
	}
}

func TestGPUsThatCannotBeHad(t *testing.T) {
	tests := []struct{ name, gpus, says string }{
		{"too few", `0, GPU-a\n`, "needs 2 GPUs, this machine has 1"},
		{"no list", `what?\n`, "list GPUs: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRun(t, "true")
			r.launch.Job.Layout.GPUsPerNode = 2
			r.launch.Slots = &jobspec.Slots{Dir: t.TempDir(), Ticket: "1", Need: 2, GPUs: true}
			fakeNvidia(t, r, test.gpus, "")
			n := r.start()
			if code := n.wait(); code != exitSetup {
				t.Errorf("exit code %d, want %d", code, exitSetup)
			}
			if status := n.wantEnd(jobspec.Failed, jobspec.ReasonSetupFailed); !strings.Contains(status.Reason.Text, test.says) {
				t.Errorf("reason is %q, want %q", status.Reason.Text, test.says)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	if os.Getenv("QJ_TEST_CHILDREN") == "" { // children reaps all of its process's: it needs one of its own
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOutputIsBounded$", "-test.v")
		cmd.Env = append(os.Environ(), "QJ_TEST_CHILDREN=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	kids := newChildren()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := kids.output(ctx, "sh", "-c", "sleep 1000 & sleep 1000"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that hangs: %v", err)
	}
	if _, err := kids.output(t.Context(), "yes"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a program that floods: %v", err)
	}
	if _, err := kids.output(t.Context(), "sh", "-c", "echo no driver; exit 9"); err == nil || err.Error() != "sh: exit code 9: no driver" {
		t.Errorf("a program that fails: %v", err)
	}
	if out, err := kids.output(t.Context(), "echo", "fine"); err != nil || string(out) != "fine\n" {
		t.Errorf("a program that works: %q, %v", out, err)
	}
}
