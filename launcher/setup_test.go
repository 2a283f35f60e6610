//go:build linux

package launcher

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"qj/jobspec"
)

func TestSetUpThatFails(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, r *run)
		says  string
	}{
		{"tampered layer", func(t *testing.T, r *run) {
			layers, err := filepath.Glob(filepath.Join(r.store.Root(), "code", "*.zip"))
			if err != nil || len(layers) != 1 {
				t.Fatalf("layers %q, %v", layers, err)
			}
			body, err := os.ReadFile(layers[0])
			if err != nil {
				t.Fatal(err)
			}
			body[len(body)/2] ^= 1
			if err := os.WriteFile(layers[0], body, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "hash mismatch"},
		{"no snapshot", func(t *testing.T, r *run) {
			r.launch.Job.Code.Snapshot = strings.Repeat("0", 64)
		}, "unpack code: "},
		{"no subfolder", func(_ *testing.T, r *run) { r.launch.Job.Subdir = "none" }, "find working folder: none"},
		{"mount of nothing", func(_ *testing.T, r *run) {
			r.launch.Job.Mounts = []jobspec.Mount{{Name: "data", Path: "/no/such/folder"}}
		}, "map folder data: "},
		{"mount of a file", func(_ *testing.T, r *run) {
			r.launch.Job.Mounts = []jobspec.Mount{{Name: "data", Path: os.Args[0]}}
		}, "is not a folder"},
		{"mount over code", func(t *testing.T, r *run) {
			r.launch.Job.Mounts = []jobspec.Mount{{Name: "sub", Path: t.TempDir()}}
		}, "the code has something else at sub"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRun(t, "true")
			test.spoil(t, r)
			n := r.start()
			if code := n.wait(); code != exitSetup {
				t.Errorf("exit code %d, want %d", code, exitSetup)
			}
			status := n.wantEnd(jobspec.Failed, jobspec.ReasonSetupFailed)
			if !strings.Contains(status.Reason.Text, test.says) {
				t.Errorf("reason is %q, want %q", status.Reason.Text, test.says)
			}
			if !status.Started.IsZero() || status.Exit == nil || status.Exit.Code != nil {
				t.Errorf("started %s, exit %+v: no rank ever ran", status.Started, status.Exit)
			}
			if log := r.logs()["0/launcher-0"]; !strings.Contains(log, test.says) {
				t.Errorf("the launcher's log does not tell: %q", log)
			}
		})
	}
}

func TestMountsAreLinked(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "digits"), []byte("012"), 0o600); err != nil {
		t.Fatal(err)
	}
	code := t.TempDir()
	m := jobspec.Mount{Name: "in/data", Path: data}
	for range 2 { // again, as when a node is started a second time
		if err := link(m, code); err != nil {
			t.Fatal(err)
		}
	}
	if body, err := os.ReadFile(filepath.Join(code, "in", "data", "digits")); string(body) != "012" {
		t.Errorf("through the link: %q, %v", body, err)
	}
	real := filepath.Join(code, "real")
	if err := os.MkdirAll(real, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(real, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range []jobspec.Mount{{Name: "real", Path: data}, {Name: "in/data", Path: code}} {
		if err := link(m, code); err == nil {
			t.Errorf("%s was mapped over something else", m.Name)
		}
	}
	if _, err := os.Stat(filepath.Join(real, "kept")); err != nil {
		t.Error(err)
	}
}

func TestBadPlans(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*jobspec.Launch)
		says  string
	}{
		{"newer format", func(l *jobspec.Launch) { l.Format = jobspec.Format + 1 }, "update qj"},
		{"no node", func(l *jobspec.Launch) { l.Job.Layout.Nodes = 0 }, "node 0 of 0"},
		{"no processes", func(l *jobspec.Launch) { l.Job.Layout.ProcsPerNode = 0 }, "0 processes a node"},
		{"strange store", func(l *jobspec.Launch) { l.Store.Type = "tape" }, `no store of type "tape"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRun(t, "true")
			test.spoil(&r.launch)
			n := r.start()
			if code := n.wait(); code != exitSetup {
				t.Errorf("exit code %d, want %d", code, exitSetup)
			}
			if said, err := os.ReadFile(n.stderr); err != nil || !strings.Contains(string(said), test.says) {
				t.Errorf("it says %q (%v), want %q", said, err, test.says)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"walk"}, {"run", "--no-such-flag"}} {
		var stderr strings.Builder
		if code := Main(nil, args, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "usage:") {
			t.Errorf("%q: exit code %d, says %q", args, code, stderr.String())
		}
	}
}

// shell runs a command where the node's rank runs.
func (n *testNode) shell(command ...string) (stdout string, code int) {
	n.t.Helper()
	args := append([]string{"qj-node", "shell", "--work", n.work(n.node), "--"}, command...)
	cmd := exec.CommandContext(n.t.Context(), os.Args[0], args...)
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		n.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestHoldKeepsTheNodeForAShell(t *testing.T) {
	r := newRun(t, "/bin/sh", "-c", "echo broken; exit 4")
	r.launch.Job.Hold = jobspec.Duration(time.Hour)
	r.launch.Job.Subdir = "sub"
	n := r.start()
	var report jobspec.Report
	await(t, "the hold", func() bool {
		report = n.report()
		return report.Status.Reason.Code == jobspec.ReasonHeld
	})
	if s := report.Status; s.State != jobspec.Finishing || !strings.HasPrefix(s.Reason.Text, "rank 0 exited with code 4; held for ssh until ") || s.Exit == nil {
		t.Errorf("held as %+v", s)
	}
	want := filepath.Join(r.work(0), "code", "sub") + " 0 1\n"
	if out, code := n.shell("sh", "-c", `echo "$(pwd) $RANK $WORLD_SIZE"; exit 6`); out != want || code != 6 {
		t.Errorf("the shell says %q and ends with %d, want %q and 6", out, code, want)
	}
	if _, code := n.shell("no-such-command"); code != 127 {
		t.Errorf("no such command: exit code %d, want 127", code)
	}
	await(t, "the log of the held run", func() bool { return r.logs()["0/rank-0"] == "broken\n" })
	if err := n.guard.Process.Signal(syscall.SIGTERM); err != nil { // enough looked
		t.Fatal(err)
	}
	if code := n.wait(); code != 4 {
		t.Errorf("exit code %d, want the rank's own 4", code)
	}
	n.wantEnd(jobspec.Failed, jobspec.ReasonRankFailed)
	if _, code := n.shell("true"); code != 255 {
		t.Errorf("a shell in a run that is over: exit code %d, want 255", code)
	}
}

func TestHoldEnds(t *testing.T) {
	for _, command := range []string{"exit 4", "exit 0"} {
		r := newRun(t, "/bin/sh", "-c", command)
		r.launch.Job.Hold = jobspec.Duration(10 * time.Millisecond)
		n := r.start()
		n.wait()
		if s := n.report().Status; !s.State.Ended() || s.Reason.Code == jobspec.ReasonHeld {
			t.Errorf("%s: ended as %+v", command, s)
		}
	}
}

func TestInteractiveShell(t *testing.T) {
	for shell, want := range map[string]string{"/bin/sh": "/bin/sh", "/no/such/zsh": "/bin/sh", "": "/bin/sh", "/usr/bin/env": "/usr/bin/env"} {
		if got := interactiveShell([]string{"A=1", "SHELL=" + shell}); got != want {
			t.Errorf("SHELL=%s gives %s, want %s", shell, got, want)
		}
	}
}

func TestPrivateValuesAreNotInAnyRecord(t *testing.T) {
	r := newRun(t, "true")
	r.private.Secrets = map[string]jobspec.Secret{"TOKEN": "hush-hush"}
	n := r.start()
	n.wait()
	report, err := json.Marshal(n.stored())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range r.logs() {
		report = append(report, name+text...)
	}
	if strings.Contains(string(report), "hush-hush") || strings.Contains(string(report), r.private.Key.Reveal()) {
		t.Errorf("a private value is told: %s", report)
	}
}
