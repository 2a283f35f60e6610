//go:build unix

package local

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"qj/backends"
	"qj/backends/backendtest"
	"qj/jobspec"
	"qj/process"
	"qj/statefile"
)

// running starts a run that has no end, with a process that left its family, and waits for both.
func running(t *testing.T, o Options) (*backendtest.Suite, *Backend, folder) {
	t.Helper()
	s := backendtest.New(t, harness(t, o))
	b := open(t, o)
	task := s.Task(t, 1, 1, "setsid sh -c 'touch left; exec "+s.Forever()+"' & "+s.Forever())
	h := s.Submit(t, b, task)
	s.Until(t.Context(), t, b, h, backendtest.Is(jobspec.Running))
	f := b.folder(task.Run.ID)
	deadline := time.Now().Add(patience)
	for {
		if _, err := os.Stat(filepath.Join(f.node(0), "code", "left")); err == nil {
			return s, b, f
		}
		if time.Now().After(deadline) {
			t.Fatal("no process has left its family")
		}
		time.Sleep(poll)
	}
}

func pair(t *testing.T, f folder) process.Pair {
	t.Helper()
	var p process.Pair
	if err := statefile.ReadJSON(filepath.Join(f.node(0), jobspec.ProcessesFile), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// A machine that was restarted has none of the processes, even if others have their pids now.
func TestReboot(t *testing.T) {
	s, b, f := running(t, options(t))
	processes := pair(t, f)
	forged := processes
	forged.Guard.Boot, forged.Lead.Boot = "another", "another"
	body, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	if err := statefile.Write(filepath.Join(f.node(0), jobspec.ProcessesFile), body); err != nil {
		t.Fatal(err)
	}
	status := s.Until(t.Context(), t, b, jobspec.Handle(f.id), backendtest.Is(jobspec.Failed))
	if status.Reason.Code != jobspec.ReasonRebooted || status.Ended.IsZero() || status.Started.IsZero() || status.Raw != "dead" {
		t.Errorf("after a reboot: %+v", status)
	}
	// The launcher, which lives in truth, goes the hard way.
	for _, p := range []process.ID{processes.Guard, processes.Lead} {
		if err := p.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	gone(t, processes.Guard, processes.Lead)
}

// When guard and lead are killed at the same moment, nobody is left to end what they started: the run
// says so, and the next Cancel does it.
func TestLauncherAndGuardKilled(t *testing.T) {
	s, b, f := running(t, options(t))
	h := jobspec.Handle(f.id)
	private := filepath.Join(f.boot(), jobspec.PrivateFile)
	if err := statefile.Write(private, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	p := pair(t, f)
	// Stopped, neither sees the other die. The lead goes first: the end of the guard, its parent, would have
	// the kernel continue it.
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for _, id := range []process.ID{p.Lead, p.Guard} {
			if err := id.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone(t, p.Guard, p.Lead)
	status := s.Until(t.Context(), t, b, h, backendtest.Is(jobspec.Failed))
	if status.Reason.Code != jobspec.ReasonLauncherDied || status.Ended.IsZero() || status.Raw != "dead" {
		t.Errorf("status %+v", status)
	}
	if left := process.WithEnv(jobspec.EnvRunID, string(f.id)); len(left) == 0 {
		t.Error("the process that left its family is gone already: the test proves nothing")
	}
	if err := b.Cancel(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if left := process.WithEnv(jobspec.EnvRunID, string(f.id)); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, err := os.Stat(private); err == nil {
		t.Error("the private values are left")
	}
	again := s.Until(t.Context(), t, b, h, backendtest.Is(jobspec.Failed))
	if again.Reason != status.Reason || !again.Ended.Equal(status.Ended) {
		t.Errorf("the end moved from %+v to %+v", status, again)
	}
}

func gone(t *testing.T, ids ...process.ID) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for slices.ContainsFunc(ids, process.ID.Alive) {
		if time.Now().After(deadline) {
			t.Fatalf("%v cannot be killed", ids)
		}
		time.Sleep(poll)
	}
}

// A launcher that ends before it can report says why by what it printed.
func TestLauncherCannotStart(t *testing.T) {
	o := options(t)
	o.Launcher = []string{"/bin/sh", "-c", "echo first; echo 'no such thing' >&2; exit 1"}
	s := backendtest.New(t, harness(t, o))
	b := open(t, o)
	h := s.Submit(t, b, s.Task(t, 1, 1, "true"))
	status := s.Until(t.Context(), t, b, h, backendtest.Is(jobspec.Failed))
	if status.Reason.Code != jobspec.ReasonLauncherDied || !strings.HasSuffix(status.Reason.Text, ": first no such thing") || status.Ended.IsZero() {
		t.Errorf("status %+v", status)
	}
	o.Launcher = []string{"/bin/sh", "-c", "exit 1"}
	b = open(t, o)
	h = s.Submit(t, b, s.Task(t, 1, 1, "true"))
	status = s.Until(t.Context(), t, b, h, backendtest.Is(jobspec.Failed))
	if !strings.HasSuffix(status.Reason.Text, ": it said nothing") {
		t.Errorf("status %+v", status)
	}
}

// A launcher that is not there is an error of Submit: there is no run, and nothing private stays.
func TestNoLauncher(t *testing.T) {
	o := options(t)
	o.Launcher = []string{"/nonexistent/qj-node"}
	s := backendtest.New(t, harness(t, o))
	b := open(t, o)
	task := s.Task(t, 1, 1, "true")
	if _, err := b.Submit(t.Context(), s.Plan(t, b, task)); err == nil || !strings.Contains(err.Error(), "start node 0") {
		t.Errorf("submit: %v", err)
	}
	h := handle(task.Run.ID)
	if got, err := b.Status(t.Context(), []jobspec.Handle{h}); err != nil || len(got) != 0 {
		t.Errorf("status: %v, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(b.folder(task.Run.ID).boot(), jobspec.PrivateFile)); err == nil {
		t.Error("the private values are left")
	}
}

// Others cannot look into the boot folder.
func TestFilesArePrivate(t *testing.T) {
	_, _, f := running(t, options(t))
	for path, want := range map[string]os.FileMode{
		f.boot(): 0o700, f.node(0): 0o700, f.starter(0): 0o600, f.out(0): 0o600,
		filepath.Join(f.boot(), jobspec.LaunchFile):  0o600,
		filepath.Join(f.boot(), jobspec.PrivateFile): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// A run with a damaged file has failed, for a reason that names the file, and hides no other run.
func TestDamagedFiles(t *testing.T) {
	for _, name := range []string{jobspec.ProcessesFile, jobspec.ReportFile} {
		o := planOptions(Config{})
		o.Dir = t.TempDir()
		b := open(t, o)
		f := b.folder("ann-1714979289-0123abcd")
		if err := os.MkdirAll(f.node(0), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, body := range map[string]string{f.starter(0): "{}", filepath.Join(f.node(0), name): `{"format"`} {
			if err := statefile.Write(file, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		h := handle(f.id)
		got, err := b.Status(t.Context(), []jobspec.Handle{h})
		if err != nil || got[h].State != jobspec.Failed || got[h].Reason.Code != jobspec.ReasonLauncherDied || !strings.Contains(got[h].Reason.Text, name) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err := b.Cancel(t.Context(), h); err != nil {
			t.Errorf("%s: cancel: %v", name, err)
		}
	}
}

// A cancel that comes before the first launcher leaves the run whole: its submitter stops it in good order.
func TestCancelBeforeStart(t *testing.T) {
	s := backendtest.New(t, harness(t, options(t)))
	b := open(t, options(t))
	task := s.Task(t, 1, 1, "true")
	f := b.folder(task.Run.ID)
	private := filepath.Join(f.boot(), jobspec.PrivateFile)
	if err := os.MkdirAll(f.boot(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := statefile.Write(private, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := b.Cancel(t.Context(), jobspec.Handle(f.id)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(private); err != nil {
		t.Error(err)
	}
}

// A state folder may be shared by machines: what runs on another one is neither dead nor ours to stop.
func TestElsewhere(t *testing.T) {
	s, b, f := running(t, options(t))
	processes := pair(t, f)
	forged := processes
	forged.Guard.Host, forged.Lead.Host = "login2", "login2"
	forged.Guard.Boot, forged.Lead.Boot = "another", "another"
	path := filepath.Join(f.node(0), jobspec.ProcessesFile)
	if err := statefile.WriteJSON(path, forged); err != nil {
		t.Fatal(err)
	}
	h := handle(f.id)
	got, err := b.Status(t.Context(), []jobspec.Handle{h})
	if err != nil || got[h].State != jobspec.Running || got[h].Raw != "on login2" {
		t.Errorf("status: %+v, %v", got, err)
	}
	if err := b.Cancel(t.Context(), h); err == nil || !strings.Contains(err.Error(), "login2") {
		t.Errorf("cancel: %v", err)
	}
	if _, err := b.Shell(t.Context(), h, backends.Shell{Command: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "login2") {
		t.Errorf("shell: %v", err)
	}
	if err := statefile.WriteJSON(path, processes); err != nil {
		t.Fatal(err)
	}
	s.Until(t.Context(), t, b, h, backendtest.Is(jobspec.Running))
}

// Damaged files do not end a run that lives, and a machine that cannot read them ends nothing at all.
func TestUnreadableWhileAlive(t *testing.T) {
	s, b, f := running(t, options(t))
	path := filepath.Join(f.node(0), jobspec.ProcessesFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h := handle(f.id)
	if err := statefile.Write(path, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Status(t.Context(), []jobspec.Handle{h}); err != nil || got[h].State != jobspec.Running || got[h].Raw != "damaged" {
		t.Errorf("damaged: %+v, %v", got, err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Status(t.Context(), []jobspec.Handle{h}); err == nil {
		t.Errorf("not readable: %+v", got)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, good, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.Until(t.Context(), t, b, h, backendtest.Is(jobspec.Running))
}
