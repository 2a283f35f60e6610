//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"qj/process"
)

// patience bounds every wait of a script: on a machine that is not overloaded none comes near it.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"qj": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
			context.AfterFunc(ctx, stop)
			os.Exit(Main(ctx, System()))
		},
	})
}

// TestScript runs testdata/script: the specification of the command line, one topic a file. Scripts start
// in the empty project folder $WORK/proj, with a home folder of their own and no GPU.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails":     failsCommand,
			"setid":     setidCommand,
			"waitstate": waitstateCommand,
			"waitfile":  waitfileCommand,
			"json":      jsonCommand,
			"jsonkeys":  jsonkeysCommand,
		},
	})
}

// programs lie in $WORK/bin, the first folder of PATH, where a script can put its own. However many GPUs
// the machine has, scripts see none. `block NAME` says that it started by the file $WORK/NAME.started and
// goes on when there is a file $WORK/NAME, so that nothing in a script depends on time.
var programs = map[string]string{
	"nvidia-smi": "#!/bin/sh\n",
	"block": `#!/bin/sh
echo "$1 started"
: > "$WORK/$1.started"
until [ -e "$WORK/$1" ]; do sleep 0.02; done
echo "$1 goes on"
`,
}

func addProgram(path, text string) error {
	if _, err := os.Stat(path); err == nil {
		return nil // the script brought another
	}
	return os.WriteFile(path, []byte(text), 0o777)
}

func setupScript(env *testscript.Env) error {
	env.Cd = filepath.Join(env.WorkDir, "proj")
	bin := filepath.Join(env.WorkDir, "bin")
	home := filepath.Join(env.WorkDir, "home")
	for _, dir := range []string{env.Cd, bin, home} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	for name, text := range programs {
		if err := addProgram(filepath.Join(bin, name), text); err != nil {
			return err
		}
	}
	brought, err := filepath.Glob(filepath.Join(bin, "*"))
	if err != nil {
		return err
	}
	for _, program := range brought {
		if err := os.Chmod(program, 0o777); err != nil {
			return err
		}
	}
	env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
	env.Setenv("HOME", home)
	env.Setenv("USER", "ada")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // else every qj of a -race test takes a second to leave
	env.Defer(func() { endRuns(env.T(), filepath.Join(home, ".local/state/qj/local/runs")) })
	return nil
}

// endRuns kills what a script left running: the guard of a killed launcher ends all the rest.
func endRuns(t testscript.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "node-*", "processes.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		var pair process.Pair
		if err == nil {
			err = json.Unmarshal(body, &pair)
		}
		if err == nil {
			err = pair.Lead.Signal(syscall.SIGKILL)
		}
		if err == nil {
			err = poll(func() bool { return !pair.Guard.Alive() })
		}
		if err != nil {
			t.Log("end ", file, ": ", err, pair.Guard.Signal(syscall.SIGKILL))
		}
	}
}

// poll asks until done says yes.
func poll(done func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// failsCommand is `fails CODE program...`: it ends with that code, and what it says of its own failure is
// one line that begins in lower case, and at most one hint.
func failsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE program [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		ts.Fatalf("want exit code %s, got: %v", args[0], err)
	}
	if got := strconv.Itoa(exit.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
	if args[0] != "1" && args[0] != "2" {
		return
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stderr"), "\n"), "\n")
	if strings.HasPrefix(lines[len(lines)-1], "qj: hint: ") {
		lines = lines[:len(lines)-1]
	}
	if len(lines) == 0 || !regexp.MustCompile(`^qj: [^A-Z ]`).MatchString(lines[len(lines)-1]) {
		ts.Fatalf("want an error in one line `qj: lower case`")
	}
}

// setidCommand is `setid NAME`: the run id that was just printed, alone on stdout, becomes $NAME.
func setidCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: setid NAME")
	}
	out := ts.ReadFile("stdout")
	if !regexp.MustCompile(`^ada-[0-9]+-[0-9a-f]{8}\n$`).MatchString(out) {
		ts.Fatalf("want a run id and nothing else on stdout, got %q", out)
	}
	ts.Setenv(args[0], strings.TrimSpace(out))
}

// waitstateCommand is `waitstate ID STATE [REASON]`: asks until the run is in the state, for a reason
// whose text matches.
func waitstateCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: waitstate ID STATE [REASON]")
	}
	reason := regexp.MustCompile(strings.Join(args[2:], ""))
	var last string
	err := poll(func() bool {
		var list []struct {
			State  string `json:"state"`
			Reason string `json:"reason_text"`
		}
		out := askQj(ts, "q", "--no-logs", "-o", "json", args[0])
		if err := json.Unmarshal(out, &list); err != nil || len(list) != 1 {
			ts.Fatalf("qj q -o json %s: %v: %s", args[0], err, out)
		}
		last = list[0].State + " " + list[0].Reason
		return list[0].State == args[1] && reason.MatchString(list[0].Reason)
	})
	if err != nil {
		ts.Fatalf("run %s is %s: %v", args[0], last, err)
	}
}

// asking keeps scripts that run side by side from being in askQj at once: the library keeps its help flag
// in a variable of the process.
var asking sync.Mutex

// askQj runs qj in this process and returns its stdout.
func askQj(ts *testscript.TestScript, args ...string) []byte {
	asking.Lock()
	defer asking.Unlock()
	var out, messages bytes.Buffer
	code := Main(context.Background(), World{
		Args: append([]string{"qj"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &messages,
		Getenv: ts.Getenv, Dir: ts.MkAbs("."), Home: ts.Getenv("HOME"), User: ts.Getenv("USER"), Host: "test", Now: time.Now,
	})
	if code != exitOK {
		ts.Fatalf("qj %s: exit code %d: %s", strings.Join(args, " "), code, messages.String())
	}
	return out.Bytes()
}

// waitfileCommand is `waitfile FILE...`: waits until they exist.
func waitfileCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: waitfile FILE...")
	}
	for _, name := range args {
		path := ts.MkAbs(name)
		if err := poll(func() bool { _, err := os.Stat(path); return err == nil }); err != nil {
			ts.Fatalf("wait for %s: %v", name, err)
		}
	}
}

// jsonCommand is `[!] json FILE PATH [VALUE]`: FILE is one JSON document and nothing else, and what lies
// at PATH (0.exit.code) is VALUE, as text or as JSON; without VALUE, it is there.
func jsonCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: json FILE PATH [VALUE]")
	}
	value, found := jsonAt(ts, args[0], args[1])
	text, isText := value.(string)
	if !isText {
		body, err := json.Marshal(value)
		ts.Check(err)
		text = string(body)
	}
	if ok := found && (len(args) == 2 || text == args[2]); ok == neg {
		ts.Fatalf("%s is %q (there: %v)", args[1], text, found)
	}
}

// jsonkeysCommand is `jsonkeys FILE PATH KEY...`: the object at PATH has all of the keys.
func jsonkeysCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: jsonkeys FILE PATH KEY...")
	}
	for _, key := range args[2:] {
		if _, found := jsonAt(ts, args[0], args[1]+"."+key); !found {
			ts.Fatalf("%s has no key %s", args[1], key)
		}
	}
}

func jsonAt(ts *testscript.TestScript, file, path string) (value any, found bool) {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		ts.Fatalf("%s is not JSON: %v", file, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		ts.Fatalf("%s has more than one JSON document in it", file)
	}
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		switch v := value.(type) {
		case map[string]any:
			value, found = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if found = err == nil && i < len(v); found {
				value = v[i]
			}
		default:
			found = false
		}
		if !found {
			return nil, false
		}
	}
	return value, true
}
