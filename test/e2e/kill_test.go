package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A rank that starts a grandchild out of its session and prints for ever.
const stubborn = `trap '' TERM
setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
touch "started-$RANK"
i=0
while :; do i=$((i+1)); echo "rank $RANK line $i"; sleep 0.02; done
`

// started submits two stubborn ranks and waits until both print.
func started(t *testing.T, d *desk) string {
	t.Helper()
	d.write("stubborn.sh", stubborn)
	d.write("qj.yaml", "clusters: {local: {backend: local, grace: 300ms}}\n")
	id := d.must("-n", "2", "submit", "sh", "stubborn.sh")
	d.eventually("both ranks run", func() bool {
		return exists(d.code(id)+"/started-0") && exists(d.code(id)+"/started-1") && strings.Contains(d.log(id, "0"), "line")
	})
	return id
}

func (d *desk) gone(id string) {
	d.t.Helper()
	d.eventually("nothing of the run is left", func() bool { return len(left(id)) == 0 })
}

func TestKilledFollowerDoesNoHarm(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := started(t, d)
	follower := d.command("logs", "-f", id)
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	kill(t, follower.Process.Pid)
	_ = follower.Wait() // killed: its error says just that
	before := len(d.log(id, "0"))
	d.eventually("rank 0 goes on printing", func() bool { return len(d.log(id, "0")) > before })
	if run := d.query(id)[0]; run.State != "running" {
		t.Errorf("state %s, want running", run.State)
	}
	d.must("abort", id)
	d.gone(id)
	if run := d.query(id)[0]; run.State != "canceled" || run.Reason != "aborted" {
		t.Errorf("state %s, reason %s, want canceled, aborted", run.State, run.Reason)
	}
}

func TestKilledLauncherLeavesNothing(t *testing.T) {
	for name, victim := range map[string]func(*desk, string) []int{
		"lead":  func(d *desk, id string) []int { return []int{d.pair(id).Lead.PID} },
		"guard": func(d *desk, id string) []int { return []int{d.pair(id).Guard.PID} },
		"both":  func(d *desk, id string) []int { return []int{d.pair(id).Guard.PID, d.pair(id).Lead.PID} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			id := started(t, d)
			for _, pid := range victim(d, id) {
				kill(t, pid)
			}
			d.eventually("q tells the end", func() bool { return d.query(id)[0].State == "failed" })
			d.gone(id)
			run := d.query(id)[0]
			if run.Reason != "launcher_died" || !strings.Contains(run.ReasonText, "killed") {
				t.Errorf("reason %s (%s), want launcher_died, killed", run.Reason, run.ReasonText)
			}
		})
	}
}

func TestKilledRankIsBlamed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("rank.sh", "echo $$ > pid-$RANK\nexec sleep 1000\n")
	id := d.must("-n", "4", "submit", "sh", "rank.sh")
	var pid string
	d.eventually("rank 2 runs", func() bool {
		body, err := os.ReadFile(d.code(id) + "/pid-2")
		pid = strings.TrimSpace(string(body))
		return err == nil && pid != ""
	})
	if out, err := exec.Command("kill", "-9", pid).CombinedOutput(); err != nil {
		t.Fatalf("kill: %v %s", err, out)
	}
	_, stderr, code := d.run("wait", id)
	if code != 3 || !strings.Contains(stderr, "137") {
		t.Errorf("wait: exit code %d, %q; want 3, and the run's own 137", code, stderr)
	}
	run := d.query(id)[0]
	if run.State != "failed" || run.Exit == nil || run.Exit.Rank != 2 || run.Exit.Signal != 9 || *run.Exit.Code != 137 {
		t.Errorf("run: %+v %+v", run, run.Exit)
	}
	if !strings.Contains(run.ReasonText, "rank 2") || !strings.Contains(run.ReasonText, "signal 9") {
		t.Errorf("reason %q does not name rank 2 and signal 9", run.ReasonText)
	}
	d.gone(id)
}

func TestFiftySubmitsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("job.sh", "echo done\n")
	d.must("init")
	const shells, each = 10, 5
	var cmds []*exec.Cmd
	outputs := make([]strings.Builder, shells)
	for i := range shells {
		cmd := exec.Command("sh", "-c", fmt.Sprintf("for i in $(seq %d); do %s submit sh job.sh || exit 1; done", each, d.qj))
		like := d.command()
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = like.Dir, like.Env, &outputs[i], os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	ids, suffixes := map[string]bool{}, map[string]bool{}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("shell %d: %v", i, err)
		}
		for id := range strings.FieldsSeq(outputs[i].String()) {
			ids[id], suffixes[id[len(id)-5:]] = true, true
		}
	}
	if len(ids) != shells*each {
		t.Fatalf("%d distinct ids, want %d", len(ids), shells*each)
	}
	for id := range ids {
		d.must("wait", id)
	}
	listed := d.query("--max", "0")
	if len(listed) != len(ids) {
		t.Errorf("q lists %d runs, want %d", len(listed), len(ids))
	}
	for _, run := range listed {
		if !ids[run.ID] || run.State != "completed" {
			t.Errorf("run %s is %s", run.ID, run.State)
		}
	}
}

// Killed at any moment, a submit leaves no run, or one that q shows and that can be told from the rest.
func TestKilledSubmitLeavesNothingUnknown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("job.sh", "exec sleep 1000\n")
	d.must("init")
	start := time.Now()
	d.must("submit", "sh", "job.sh")
	whole := time.Since(start)
	const kills = 40
	for i := range kills {
		cmd := d.command("submit", "sh", "job.sh")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i) / kills) // the moment is the point
		_ = cmd.Process.Kill()                       // it may be through
		_ = cmd.Wait()
	}
	known := map[string]bool{}
	for _, run := range d.query("--max", "0") {
		known[run.ID] = true
		if run.State == "failed" || run.State == "lost" {
			t.Errorf("run %s is %s: %s", run.ID, run.State, run.ReasonText)
		}
	}
	folders, err := os.ReadDir(d.runs())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !known[f.Name()] {
			t.Errorf("q does not know run %s", f.Name())
		}
	}
	d.run(append([]string{"abort"}, slices.Collect(maps.Keys(known))...)...) // what is still submitting has nothing to stop
	for id := range known {
		d.gone(id)
	}
}

func TestRunSurvivesItsSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("job.sh", "until [ -e go ]; do sleep 0.05; done; echo survived\n")
	submit := d.command("submit", "sh", "job.sh")
	// A session of its own that ends with SIGHUP to all of it, as a terminal that is closed does.
	session := exec.Command("setsid", "--wait", "sh", "-c", `id=$("$@"); echo $id; kill -HUP 0`, "sh", submit.Path, "submit", "sh", "job.sh")
	session.Dir, session.Env = submit.Dir, submit.Env
	out, err := session.Output()
	var exit *exec.ExitError
	if err == nil {
		t.Fatal("the session did not end by SIGHUP")
	} else if ok := asExit(err, &exit); !ok {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(out))
	d.eventually("the rank has a folder", func() bool {
		return os.WriteFile(d.code(id)+"/go", nil, 0o644) == nil
	})
	d.must("wait", id)
	if log := d.log(id, "0"); log != "survived\n" {
		t.Errorf("rank 0 printed %q", log)
	}
}

func asExit(err error, into **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*into = e
	return ok && e.Sys().(syscall.WaitStatus).Signaled() || ok && e.ExitCode() == 128+int(syscall.SIGHUP)
}
