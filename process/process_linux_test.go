package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary also plays the processes that tests look at: `<binary> play PART…`.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		os.Exit(play(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

func play(part string, args []string) int {
	switch part {
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	case "parent": // of one more process for each further word
		child := exec.Command(os.Args[0], append([]string{"play"}, args...)...)
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return 1
		}
	case "orphan": // leaves a child behind, in a session of its own
		child := exec.Command(os.Args[0], append([]string{"play"}, args...)...)
		child.Stdout, child.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return 1
		}
		return 0
	}
	fmt.Println(os.Getpid())
	select {}
}

// start plays a part and returns the pids of all who take part, in the order in which they came up.
func start(t *testing.T, players int, parts ...string) (*exec.Cmd, []int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"play"}, parts...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "QJ_TEST_PLAY="+t.Name())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		End(context.Background(), 0, func() []int { return WithEnv("QJ_TEST_PLAY", t.Name()) })
		_ = cmd.Wait() // killed
	})
	pids := make([]int, players)
	for i := range pids {
		if _, err := fmt.Fscanln(out, &pids[i]); err != nil {
			t.Fatalf("player %d of %q did not come up: %v", i, parts, err)
		}
	}
	return cmd, pids
}

func id(t *testing.T, pid int) ID {
	t.Helper()
	id, err := Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	const patience = 20 * time.Second
	for end := time.Now().Add(patience); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

func TestIdentity(t *testing.T) {
	self, err := Self()
	if err != nil || self.PID != os.Getpid() || !self.Alive() || !self.SameBoot() {
		t.Errorf("self is %+v (alive: %v), %v", self, self.Alive(), err)
	}
	cmd, pids := start(t, 1, "sleep")
	one := id(t, pids[0])
	if !one.Alive() {
		t.Error("a process that runs is not alive")
	}
	reused, rebooted := one, one
	reused.Start++
	rebooted.Boot = "another"
	for name, other := range map[string]ID{"reused pid": reused, "other boot": rebooted, "nobody": {}, "negative": {PID: -1, Boot: one.Boot}} {
		if other.Alive() {
			t.Errorf("%s: alive", name)
		}
		if err := other.Signal(syscall.SIGKILL); err != nil {
			t.Errorf("%s: signal: %v", name, err)
		}
	}
	if rebooted.SameBoot() || !reused.SameBoot() {
		t.Error("boots are mixed up")
	}
	if !one.Alive() {
		t.Fatal("a signal to others hit it")
	}
	if err := one.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the zombie", func() bool { s, err := readStat(one.PID); return err == nil && s.zombie })
	if one.Alive() {
		t.Error("a zombie is alive")
	}
	_ = cmd.Wait()
	if one.Alive() || one.Signal(syscall.SIGKILL) != nil {
		t.Error("a process that is gone is alive, or cannot be told nothing")
	}
	if _, err := Of(one.PID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Of a process that is gone: %v", err)
	}
}

func TestDescendants(t *testing.T) {
	_, pids := start(t, 3, "parent", "parent", "sleep")
	slices.Sort(pids)
	var top int
	for _, pid := range pids {
		if s, err := readStat(pid); err == nil && s.parent == os.Getpid() {
			top = pid
		}
	}
	below := Descendants(top)
	if got := slices.Sorted(slices.Values(append(below, top))); !slices.Equal(got, pids) || len(below) != 2 {
		t.Errorf("below %d are %v, of %v", top, below, pids)
	}
	if rest := Descendants(top, below[0]); len(rest) != 0 {
		t.Errorf("without the child %d there is %v", below[0], rest)
	}
	if mine := Descendants(os.Getpid()); !slices.Contains(mine, pids[2]) {
		t.Errorf("my descendants %v lack %d", mine, pids[2])
	}
}

func TestSubreaperAdoptsOrphans(t *testing.T) {
	if err := BecomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	cmd, pids := start(t, 1, "orphan", "deaf")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if mine := Descendants(os.Getpid()); !slices.Equal(mine, pids) {
		t.Errorf("my descendants are %v, want the orphan %v", mine, pids)
	}
}

func TestEnd(t *testing.T) {
	tests := []struct {
		name   string
		parts  []string
		stop   bool // suspended, it cannot even die of TERM
		grace  time.Duration
		hurry  bool
		signal syscall.Signal
	}{
		{"willing", []string{"sleep"}, false, time.Hour, false, syscall.SIGTERM},
		{"suspended", []string{"sleep"}, true, time.Hour, false, syscall.SIGTERM},
		{"deaf", []string{"deaf"}, false, 10 * time.Millisecond, false, syscall.SIGKILL},
		{"deaf and suspended", []string{"deaf"}, true, 10 * time.Millisecond, false, syscall.SIGKILL},
		{"no grace", []string{"deaf"}, false, 0, false, syscall.SIGKILL},
		{"in a hurry", []string{"deaf"}, false, time.Hour, true, syscall.SIGKILL},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cmd, pids := start(t, 1, test.parts...)
			if test.stop {
				if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.hurry {
				cancel()
			}
			one := id(t, pids[0])
			left := End(ctx, test.grace, func() []int {
				if one.Alive() {
					return pids
				}
				return nil
			})
			if len(left) > 0 {
				t.Errorf("%v is left", left)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != test.signal {
				t.Errorf("it died of %v, want %v", got, test.signal)
			}
		})
	}
}

// Who is born while the others are being ended does not get away.
func TestEndFindsNewcomers(t *testing.T) {
	_, first := start(t, 1, "sleep")
	born := false
	var all []int
	End(t.Context(), time.Hour, func() []int {
		all = slices.DeleteFunc(WithEnv("QJ_TEST_PLAY", t.Name()), func(pid int) bool { return pid == os.Getpid() })
		if len(all) == 0 && !born {
			born = true
			_, all = start(t, 1, "sleep")
		}
		return all
	})
	if id, err := Of(first[0]); err == nil && id.Alive() || len(all) > 0 {
		t.Errorf("left are %v", all)
	}
	if !born {
		t.Error("the newcomer was never born")
	}
}

func TestWithEnv(t *testing.T) {
	_, pids := start(t, 2, "parent", "sleep")
	want := slices.Sorted(slices.Values(pids))
	if got := slices.Sorted(slices.Values(WithEnv("QJ_TEST_PLAY", t.Name()))); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	for _, value := range []string{"", strings.ToLower(t.Name()), t.Name() + "x", t.Name()[1:]} {
		if got := WithEnv("QJ_TEST_PLAY", value); len(got) > 0 {
			t.Errorf("%q: found %v", value, got)
		}
	}
}

func TestParseStat(t *testing.T) {
	const tail = " 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0" // fields 8 to 24
	tests := []struct {
		name, line string
		want       stat
		says       string
	}{
		{"plain", "7 (sh) S 3 7 7 0" + tail[2:], stat{parent: 3, start: 4711}, ""},
		{"name with spaces and parentheses", "7 (a) b) Z 9 (c) S 3 7 7 0" + tail[2:], stat{parent: 3, start: 4711}, ""},
		{"zombie", "7 (sh) Z 3 7 7 0" + tail[2:], stat{parent: 3, start: 4711, zombie: true}, ""},
		{"zombie with a living thread", "7 (sh) Z 3 7 7 0" + strings.Replace(tail[2:], "20 0 1", "20 0 2", 1), stat{parent: 3, start: 4711}, ""},
		{"dead", "7 (sh) X 3 7 7 0" + tail[2:], stat{parent: 3, start: 4711, zombie: true}, ""},
		{"empty", "", stat{}, "0 fields"},
		{"cut", "7 (sh) S 3 7", stat{}, "fields"},
		{"no number", "7 (sh) S x 7 7 0" + tail[2:], stat{}, "parse process status"},
	}
	for _, test := range tests {
		got, err := parseStat([]byte(test.line))
		if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v; want %+v, %q", test.name, got, err, test.want, test.says)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(self)
	f.Add([]byte("7 (a) b) S 3"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := parseStat(line)
		if err != nil && got != (stat{}) {
			t.Errorf("%+v beside %v", got, err)
		}
	})
}

// A program may call itself anything, to confuse who reads the process table.
func TestStatOfAStrangeName(t *testing.T) {
	strange := filepath.Join(t.TempDir(), "a) Z 1 (b")
	body, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strange, body, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strange, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}()
	if s, err := readStat(cmd.Process.Pid); err != nil || s.zombie || s.parent != os.Getpid() {
		t.Errorf("it is %+v, %v", s, err)
	}
}
