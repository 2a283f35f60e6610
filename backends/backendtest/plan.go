package backendtest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	"qj/backends"
	"qj/jobspec"
)

// planIsPure: equal tasks give equal bytes, from any backend, any number of times; a task is only read.
func planIsPure(t *testing.T, s *Suite) {
	a, b := s.Open(t), s.Open(t)
	task := s.Task(t, 2, 2, "true")
	task.Run.Job.Env = map[string]string{"B": "2", "A": "1", "D": "4", "C": "3"}
	task.Launch.Job = task.Run.Job
	if r, ok := backends.As[backends.Resolver](a); ok {
		if err := r.Resolve(t.Context(), &task); err != nil {
			t.Fatal(err)
		}
	}
	before := encode(t, task)
	first, err := a.Plan(task)
	if err != nil {
		t.Fatal(err)
	}
	var again sync.WaitGroup
	for _, backend := range []backends.Backend{a, b, a, b} {
		again.Go(func() {
			if plan, err := backend.Plan(task); err != nil || !reflect.DeepEqual(plan, first) {
				t.Errorf("planned again: %v, or another plan:\n%s\n%s", err, documents(plan), documents(first))
			}
		})
	}
	again.Wait()
	if !bytes.Equal(before, encode(t, task)) {
		t.Error("Plan changed the task")
	}
	checkDocuments(t, task, first)
	if _, err := b.Submit(canceled(t), first); err == nil {
		t.Error("a plan can be submitted after the end of the context")
	}
	other := task
	other.Run.ID = newID(t)
	other.Launch.Run = other.Run.ID
	if plan, err := a.Plan(other); err != nil || documents(plan) == documents(first) {
		t.Errorf("another run has the same plan, or none: %v", err)
	}
}

func checkDocuments(t *testing.T, task backends.Task, p backends.Plan) {
	t.Helper()
	if p.Run != task.Run.ID || len(p.Documents) == 0 || !reflect.DeepEqual(p.Private, jobspec.Private{}) {
		t.Errorf("plan of %s: run %s, %d documents, private %v", task.Run.ID, p.Run, len(p.Documents), p.Private)
	}
	seen := map[string]bool{}
	for _, d := range p.Documents {
		if d.Name == "" || seen[d.Name] || len(d.Body) == 0 {
			t.Errorf("document %q: no name, no body, or twice", d.Name)
		}
		seen[d.Name] = true
	}
}

// planHidesSecrets: a plan can be shown to anybody, even where the environment has the values.
func planHidesSecrets(t *testing.T, s *Suite) {
	b := s.Open(t)
	task := s.Task(t, 1, 1, "true")
	task.Run.Job.Secrets = []string{"TOKEN"}
	task.Launch.Job = task.Run.Job
	plan := s.Plan(t, b, task)
	plan.Private.Secrets = map[string]jobspec.Secret{"TOKEN": secretValue}
	for _, d := range plan.Documents {
		if bytes.Contains(d.Body, []byte(secretValue)) || bytes.Contains(d.Body, []byte(plan.Private.Key.Reveal())) {
			t.Errorf("document %s holds a private value", d.Name)
		}
	}
	if text := string(encode(t, plan)); bytes.Contains([]byte(text), []byte(secretValue)) {
		t.Errorf("the plan as JSON holds a private value: %s", text)
	}
}

func documents(p backends.Plan) string {
	var b bytes.Buffer
	for _, d := range p.Documents {
		b.WriteString("--- " + d.Name + "\n")
		b.Write(d.Body)
		b.WriteByte('\n')
	}
	return b.String()
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
