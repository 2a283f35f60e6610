//go:build linux

package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"qj/jobspec"
)

func TestNodeCompletes(t *testing.T) {
	for _, procs := range []int{1, 8} {
		t.Run(fmt.Sprintf("%d ranks", procs), func(t *testing.T) {
			r := newRun(t, rankCommand("print", "0")...)
			r.launch.Job.Layout.ProcsPerNode = procs
			n := r.start()
			if code := n.wait(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			status := n.wantEnd(jobspec.Completed, "")
			if status.Exit == nil || status.Exit.Code == nil || *status.Exit.Code != 0 || status.Exit.Lines != nil {
				t.Errorf("exit is %.200q, want code 0 and no blame", fmt.Sprint(status.Exit))
			}
			if status.Started.IsZero() || status.Ended.Before(status.Started) {
				t.Errorf("started %s, ended %s", status.Started, status.Ended)
			}
			if want := filepath.Join(r.work(0), "code"); status.Folder != want {
				t.Errorf("folder is %s, want %s", status.Folder, want)
			}
			report := n.stored()
			if host, _ := os.Hostname(); report.Run != r.launch.Run || report.Format != jobspec.Format || report.Host != host || report.At.IsZero() {
				t.Errorf("report is %+v", report)
			}
			logs := r.logs()
			r.wantLengths(status, logs)
			for rank := range procs {
				if logs[fmt.Sprintf("0/rank-%d", rank)] != string(sample(strconv.Itoa(rank))) {
					t.Errorf("output of rank %d is not what it wrote", rank)
				}
			}
			wantGone(t, filepath.Join(r.work(0), "streams"), filepath.Join(r.work(0), jobspec.ShellFile), filepath.Join(r.boot(), jobspec.PrivateFile))
		})
	}
}

func TestFirstFailingRankIsBlamed(t *testing.T) {
	tests := []struct {
		name   string
		mode   []string
		code   int
		signal int
		reason jobspec.ReasonCode
		text   string
		last   string
	}{
		{"exit code", []string{"print", "7"}, 7, 0, jobspec.ReasonRankFailed, "rank 2 exited with code 7", ""},
		{"signal 9", []string{"signal", "9"}, 137, 9, jobspec.ReasonRankKilled, "rank 2 was killed by signal 9 (SIGKILL)", "last words"},
		{"signal 15", []string{"signal", "15"}, 143, 15, jobspec.ReasonRankKilled, "rank 2 was killed by signal 15 (SIGTERM)", "last words"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRun(t, rankCommand("only", append([]string{"2"}, test.mode...)...)...)
			r.launch.Job.Layout.ProcsPerNode = 4
			n := r.start()
			if code := n.wait(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			status := n.wantEnd(jobspec.Failed, test.reason)
			if status.Reason.Text != test.text {
				t.Errorf("reason is %q, want %q", status.Reason.Text, test.text)
			}
			e := status.Exit
			if e == nil || e.Code == nil || *e.Code != test.code || e.Rank != 2 || e.Node != 0 || e.Signal != test.signal {
				t.Fatalf("exit is %+v", e)
			}
			if len(e.Lines) == 0 || len(e.Lines) > blamedLines || test.last != "" && e.Lines[len(e.Lines)-1] != test.last {
				t.Errorf("last lines are %q", e.Lines)
			}
			r.wantNothingLeft()
			r.wantLengths(status, r.logs())
		})
	}
}

func TestDeafRankIsKilledAfterGrace(t *testing.T) {
	r := newRun(t, "/bin/sh", "-c", `case $RANK in 0) trap "" TERM; : > "$1"; while :; do sleep 1; done;; esac; until [ -e "$1" ]; do sleep 0.01; done; exit 3`, "sh", filepath.Join(t.TempDir(), "deaf"))
	r.launch.Job.Layout.ProcsPerNode = 2
	n := r.start()
	if code := n.wait(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if status := n.wantEnd(jobspec.Failed, jobspec.ReasonRankFailed); status.Exit.Rank != 1 {
		t.Errorf("rank %d is blamed, want 1", status.Exit.Rank)
	}
	r.wantNothingLeft()
}

func TestCommandThatCannotStart(t *testing.T) {
	tests := []struct {
		command string
		code    int
		line    string
	}{
		{"no-such-command", 127, "qj: no-such-command: command not found"},
		{"./no-such-script.sh", 127, "qj: ./no-such-script.sh: command not found"},
		{"./train.py", 126, "qj: ./train.py: cannot be executed: permission denied"},
		{"./sub", 126, "qj: ./sub: cannot be executed: permission denied"},
	}
	for _, test := range tests {
		t.Run(test.command, func(t *testing.T) {
			r := newRun(t, test.command, "argument")
			r.launch.Job.Layout.ProcsPerNode = 2
			n := r.start()
			if code := n.wait(); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			status := n.wantEnd(jobspec.Failed, jobspec.ReasonCommandNotFound)
			if !strings.HasPrefix(status.Reason.Text, "rank 0: ") {
				t.Errorf("reason %q does not name the rank", status.Reason.Text)
			}
			if e := status.Exit; *e.Code != test.code || len(e.Lines) != 1 || e.Lines[0] != test.line {
				t.Errorf("exit is %+v", e)
			}
			if logs := r.logs(); logs["0/rank-0"] != test.line+"\n" {
				t.Errorf("rank 0's log is %q", logs["0/rank-0"])
			}
		})
	}
}

func TestStragglersAreEnded(t *testing.T) {
	for _, mode := range []string{"daemon", "family-ends"} {
		t.Run(mode, func(t *testing.T) {
			command := rankCommand("daemon")
			if mode == "family-ends" {
				command = []string{"/bin/sh", "-c", `setsid sleep 1000 & setsid sh -c "trap '' TERM HUP; sleep 1000; sleep 1000" & exit 0`}
			}
			r := newRun(t, command...)
			r.launch.Job.Layout.ProcsPerNode = 2
			n := r.start()
			if code := n.wait(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			r.wantNothingLeft()
			n.wantEnd(jobspec.Completed, "")
		})
	}
}

func TestTermIsForwarded(t *testing.T) {
	r := newRun(t, rankCommand("count", "")...)
	r.launch.Job.Command = rankCommand("count", r.counter())
	n := r.start()
	await(t, "output", func() bool { return r.counted(0) > 10 })
	n.await(jobspec.Running)
	if err := n.guard.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := n.wait(); code != exitPreempted {
		t.Errorf("exit code %d, want %d", code, exitPreempted)
	}
	status := n.wantEnd(jobspec.Preempted, jobspec.ReasonTerminated)
	if status.Exit != nil && status.Exit.Code != nil {
		t.Errorf("exit code %d is blamed on a rank", *status.Exit.Code)
	}
	r.wantNothingLeft()
	r.wantCounted(r.logs(), 0)
}

// A cluster may send its TERM at any moment, also before the node's second process is ready for it.
func TestTermAtOnce(t *testing.T) {
	for range 10 {
		r := newRun(t, rankCommand("sleep")...)
		n := r.start()
		n.processes()
		if err := n.guard.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := n.wait(); code != exitPreempted {
			t.Errorf("exit code %d, want %d", code, exitPreempted)
		}
		n.wantEnd(jobspec.Preempted, jobspec.ReasonTerminated)
		r.wantNothingLeft()
	}
}

func TestStartingTwiceIsHarmless(t *testing.T) {
	r := newRun(t, "/bin/sh", "-c", `until [ -e "$0" ]; do sleep 0.01; done; exit 5`, filepath.Join(t.TempDir(), "go"))
	release := r.launch.Job.Command[3]
	first := r.start()
	first.await(jobspec.Running)
	before := first.processes()
	if code := r.startNode(0).wait(); code != 0 {
		t.Errorf("the second start ended with %d while the first runs, want 0", code)
	}
	if after := first.processes(); after != before || !after.Lead.Alive() {
		t.Errorf("the second start replaced %v by %v", before, after)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := first.wait(); code != 5 {
		t.Errorf("exit code %d, want 5", code)
	}
	ended := first.wantEnd(jobspec.Failed, jobspec.ReasonRankFailed).Ended
	if code := r.startNode(0).wait(); code != 5 {
		t.Errorf("a start after the end gave %d, want the run's own 5", code)
	}
	if again := first.wantEnd(jobspec.Failed, jobspec.ReasonRankFailed).Ended; !again.Equal(ended) {
		t.Errorf("a start after the end moved it from %s to %s", ended, again)
	}
}
