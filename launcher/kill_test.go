//go:build linux

package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"qj/jobspec"
)

// counting is a run of ranks that write for ever, each with a deaf child in a session of its own.
func counting(t *testing.T, ranks int) *run {
	r := newRun(t)
	r.launch.Job.Command = rankCommand("family", r.counter())
	r.launch.Job.Layout.ProcsPerNode = ranks
	return r
}

func (r *run) awaitCounts(ranks, lines int) {
	r.t.Helper()
	for rank := range ranks {
		await(r.t, "lines of a rank", func() bool { return r.counted(rank) >= lines })
	}
}

func TestLeadKilledWhileRanksRun(t *testing.T) {
	for _, lines := range []int{1, 3000} {
		r := counting(t, 2)
		n := r.start()
		pair := n.processes()
		r.awaitCounts(2, lines)
		if err := pair.Lead.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := n.wait(); code != exitSetup {
			t.Errorf("exit code %d, want %d", code, exitSetup)
		}
		r.wantNothingLeft()
		status := n.wantEnd(jobspec.Failed, jobspec.ReasonLauncherDied)
		if want := "the launcher was killed by signal 9 (SIGKILL)"; status.Reason.Text != want {
			t.Errorf("reason is %q, want %q", status.Reason.Text, want)
		}
		if status.Started.IsZero() || status.Folder == "" {
			t.Errorf("status forgot when it started (%s) or where (%q)", status.Started, status.Folder)
		}
		logs := r.logs()
		r.wantLengths(status, logs)
		r.wantCounted(logs, 0)
		r.wantCounted(logs, 1)
		wantGone(t, filepath.Join(r.work(0), "streams"), filepath.Join(r.work(0), jobspec.ShellFile), filepath.Join(r.boot(), jobspec.PrivateFile))
	}
}

func TestGuardKilledWhileRanksRun(t *testing.T) {
	r := counting(t, 2)
	r.launch.Grace = jobspec.Duration(time.Hour) // nobody waits for deaf processes when half of the launcher is dead
	n := r.start()
	pair := n.processes()
	n.await(jobspec.Running)
	r.awaitCounts(2, 500)
	if err := pair.Guard.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the lead's end", func() bool { return !pair.Lead.Alive() })
	r.wantNothingLeft()
	status := n.wantEnd(jobspec.Failed, jobspec.ReasonLauncherDied)
	if !strings.Contains(status.Reason.Text, "guard was killed") {
		t.Errorf("reason is %q", status.Reason.Text)
	}
	logs := r.logs()
	r.wantLengths(status, logs)
	r.wantCounted(logs, 0)
	r.wantCounted(logs, 1)
}

func TestStartWhileOnlyTheLeadLives(t *testing.T) {
	r := newRun(t, rankCommand("print", "0")...)
	mend := r.breakLogs() // keeps the lead busy
	n := r.start()
	pair := n.processes()
	n.await(jobspec.Finishing)
	if err := pair.Guard.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	n.wait()
	if code := r.startNode(0).wait(); code != 0 {
		t.Errorf("a second start ended with %d beside a living lead, want 0", code)
	}
	if again := n.processes(); again != pair || !pair.Lead.Alive() {
		t.Errorf("a second start took the node over: %v, was %v", again, pair)
	}
	mend()
	await(t, "the lead's end", func() bool { return !pair.Lead.Alive() })
	n.wantEnd(jobspec.Completed, "")
}

func TestLeadKilledWhileQueued(t *testing.T) {
	slots := jobspec.Slots{Dir: t.TempDir(), Ticket: "1", Need: 1, Count: 1}
	take(t, slots)
	r := newRun(t, rankCommand("sleep")...)
	slots.Ticket = "2"
	r.launch.Slots = &slots
	n := r.start()
	pair := n.processes()
	n.await(jobspec.Queued)
	if err := pair.Lead.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := n.wait(); code != exitSetup {
		t.Errorf("exit code %d, want %d", code, exitSetup)
	}
	status := n.wantEnd(jobspec.Failed, jobspec.ReasonLauncherDied)
	if !status.Started.IsZero() {
		t.Errorf("a run that never ran started at %s", status.Started)
	}
}

// The ranks have ended but the logs cannot be shipped yet: what the lead had still to do, the guard does.
func TestLeadKilledWhileFinishing(t *testing.T) {
	r := newRun(t, rankCommand("print", "0")...)
	mend := r.breakLogs()
	n := r.start()
	pair := n.processes()
	n.await(jobspec.Finishing)
	if err := pair.Lead.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mend()
	if code := n.wait(); code != exitSetup {
		t.Errorf("exit code %d, want %d", code, exitSetup)
	}
	status := n.wantEnd(jobspec.Failed, jobspec.ReasonLauncherDied)
	logs := r.logs()
	r.wantLengths(status, logs)
	if logs["0/rank-0"] != string(sample("0")) {
		t.Error("output of rank 0 is not what it wrote")
	}
}

func TestGuardKilledWhileFinishing(t *testing.T) {
	r := newRun(t, rankCommand("print", "0")...)
	mend := r.breakLogs()
	n := r.start()
	pair := n.processes()
	n.await(jobspec.Finishing)
	if err := pair.Guard.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mend()
	await(t, "the lead's end", func() bool { return !pair.Lead.Alive() })
	status := n.wantEnd(jobspec.Completed, "") // nothing was left that could go wrong
	logs := r.logs()
	r.wantLengths(status, logs)
	if logs["0/rank-0"] != string(sample("0")) {
		t.Error("output of rank 0 is not what it wrote")
	}
}

// breakLogs makes the store refuse logs until the returned function is called.
func (r *run) breakLogs() (mend func()) {
	r.t.Helper()
	logs := filepath.Join(r.store.Root(), filepath.FromSlash(r.prefix()), "logs")
	if err := os.MkdirAll(filepath.Dir(logs), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(logs, nil, 0o600); err != nil { // where a folder should be
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		if err := os.Remove(logs); err != nil {
			r.t.Fatal(err)
		}
	}
}
