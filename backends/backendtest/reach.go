package backendtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"qj/backends"
	"qj/jobspec"
)

const secretValue = "hunter2 \"$x\" '\n€"

// secretsArrive: ranks of every node have the values, and nobody else.
func secretsArrive(t *testing.T, s *Suite) {
	b := s.Open(t)
	task := s.Task(t, 2, 1, fmt.Sprintf(`test "$(printf %%s "$TOKEN" | sha256sum)" = "%x  -" && %s`, sha256.Sum256([]byte(secretValue)), s.wait()))
	task.Run.Job.Secrets = []string{"TOKEN"}
	task.Launch.Job = task.Run.Job
	plan := s.Plan(t, b, task)
	plan.Private.Secrets = map[string]jobspec.Secret{"TOKEN": secretValue}
	h := s.submitPlan(t, b, plan)
	s.Until(t.Context(), t, b, h, Is(jobspec.Completed))
	keys, bodies := s.objects(t, "runs/"+string(task.Run.ID)+"/")
	for i, body := range bodies {
		private := strings.Contains(keys[i], "/boot/") // the private channel where the platform mounts the store
		if !private && (strings.Contains(body, "hunter2") || strings.Contains(body, plan.Private.Key.Reveal())) {
			t.Errorf("object %s holds a private value", keys[i])
		}
	}
}

// shell: a command runs in rank 0's folder and environment, with streams and exit code of its own; of a
// run that is over there is no shell.
func shell(t *testing.T, s *Suite) {
	sheller, ok := backends.As[backends.Sheller](s.Open(t))
	if !ok {
		return // Capabilities holds the harness to its word
	}
	b := s.Open(t)
	task := s.Task(t, 2, 1, s.Forever())
	task.Run.Job.Env = map[string]string{"COLOUR": "blue"}
	task.Launch.Job = task.Run.Job
	h := s.Submit(t, b, task)
	s.Until(t.Context(), t, b, h, Is(jobspec.Running))

	for node := range 2 {
		var out, complaint bytes.Buffer
		code, err := sheller.Shell(t.Context(), h, backends.Shell{
			Node: node, Stdin: strings.NewReader("typed"), Stdout: &out, Stderr: &complaint,
			Command: []string{"sh", "-c", `cat code.txt -; echo " $RANK $COLOUR $QJ_RUN_ID $1"; echo oh >&2; exit 7`, "sh", `a "b" $c *`},
		})
		want := fmt.Sprintf("code\ntyped %d blue %s a \"b\" $c *\n", node, task.Run.ID)
		if err != nil || code != 7 || out.String() != want || complaint.String() != "oh\n" {
			t.Errorf("node %d: code %d, %v, stdout %q, stderr %q", node, code, err, out.String(), complaint.String())
		}
	}
	code, err := sheller.Shell(t.Context(), h, backends.Shell{Command: []string{"sh", "-c", "kill -9 $$"}})
	if err != nil || code != 128+9 {
		t.Errorf("killed: code %d, %v", code, err)
	}
	code, err = sheller.Shell(t.Context(), h, backends.Shell{Command: []string{"no-such-program"}})
	if err != nil || code != 127 {
		t.Errorf("not found: code %d, %v", code, err)
	}
	s.End(t, h)
	if code, err := sheller.Shell(t.Context(), h, backends.Shell{Command: []string{"true"}}); err == nil {
		t.Errorf("a shell in a run that is over: code %d", code)
	}
}
