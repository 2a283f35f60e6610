//go:build unix

package local

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"qj/backends"
	"qj/jobspec"
)

var update = flag.Bool("update", false, "write the golden plans anew")

// planOptions are the same on every machine.
func planOptions(c Config) Options {
	return Options{Config: c, Dir: "/home/ann/state/local", Launcher: []string{"/home/ann/cache/qj-node"}, User: "1000:1000"}
}

func planTask(l jobspec.Layout, facts map[string]string) backends.Task {
	run := jobspec.Run{
		Format: jobspec.Format, ID: "ann-1714979289-0123abcd", User: "ann", Cluster: "local", Backend: "local",
		Submitted: time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC),
		Job: jobspec.Job{
			Name: "digits", Command: []string{"python3", "train.py", "a b", "$x", "*", "<&>"}, Layout: l,
			Env: map[string]string{"B": "2", "A": "1"}, Secrets: []string{"TOKEN"}, Subdir: "src",
			Code: jobspec.Code{Snapshot: "5a", Manifest: "3a"}, Mounts: []jobspec.Mount{{Name: "data", Path: "/mnt/data"}},
			Hold: jobspec.Duration(time.Hour),
		},
	}
	return backends.Task{Run: run, Facts: facts, Launch: jobspec.Launch{
		Format: jobspec.Format, Run: run.ID, User: run.User, Job: run.Job,
		Store: jobspec.StoreRef{Type: "file", Path: "/home/ann/blob", Prefix: "p"},
		Grace: jobspec.Duration(10 * time.Second), JoinTimeout: jobspec.Duration(10 * time.Minute),
	}}
}

func TestGoldenPlans(t *testing.T) {
	none, eight := map[string]string{factGPUs: "0"}, map[string]string{factGPUs: "8"}
	image := "registry.example/image:1"
	for name, test := range map[string]struct {
		config Config
		layout jobspec.Layout
		facts  map[string]string
	}{
		"plain":         {Config{}, jobspec.Layout{NumGPU: 2, Nodes: 1, ProcsPerNode: 2, GPUsPerNode: 2}, none},
		"no-gpu-asked":  {Config{}, jobspec.Layout{NumGPU: 2, Nodes: 1, ProcsPerNode: 2}, nil},
		"slots":         {Config{Slots: 4}, jobspec.Layout{NumGPU: 3, Nodes: 1, ProcsPerNode: 3, GPUsPerNode: 3}, none},
		"gpus":          {Config{Slots: 1}, jobspec.Layout{NumGPU: 4, Nodes: 1, ProcsPerNode: 4, GPUsPerNode: 4}, eight},
		"two-nodes":     {Config{}, jobspec.Layout{NumGPU: 8, Nodes: 2, ProcsPerNode: 4, GPUsPerNode: 4}, eight},
		"docker":        {Config{Image: image}, jobspec.Layout{NumGPU: 2, Nodes: 1, ProcsPerNode: 2, GPUsPerNode: 2}, none},
		"podman-2-gpus": {Config{Image: image, Runtime: "podman"}, jobspec.Layout{NumGPU: 2, Nodes: 2, ProcsPerNode: 1, GPUsPerNode: 1}, eight},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := open(t, planOptions(test.config)).Plan(planTask(test.layout, test.facts))
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, d := range plan.Documents {
				got.WriteString("--- " + d.Name + "\n" + string(d.Body) + "\n")
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("the plan is not that of %s:\n%s", golden, &got)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, test := range []struct {
		slots, n, perNode int
		gpus, want        string
	}{
		{0, 9, 9, "8", "-n 9 needs 9 GPUs, this machine has 8"},
		{4, 5, 5, "0", "-n 5 needs 5 slots, this cluster has 4"},
		{4, 5, 0, "", "-n 5 needs 5 slots, this cluster has 4"},
	} {
		layout := jobspec.Layout{NumGPU: test.n, Nodes: 1, ProcsPerNode: test.n, GPUsPerNode: test.perNode}
		_, err := open(t, planOptions(Config{Slots: test.slots})).Plan(planTask(layout, map[string]string{factGPUs: test.gpus}))
		if err == nil || err.Error() != test.want {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, config := range map[string]Config{
		"slots: -1 is negative":                       {Slots: -1},
		`runtime: "lxc" is neither docker nor podman`: {Runtime: "lxc"},
	} {
		if _, err := New(planOptions(config)); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", config, err, want)
		}
	}
}

// Who asks for no GPU does not wait for the driver.
func TestResolve(t *testing.T) {
	broken := errors.New("driver is not loaded")
	for _, test := range []struct {
		layout jobspec.Layout
		count  int
		err    error
		want   string
	}{
		{jobspec.Layout{NumGPU: 2, GPUsPerNode: 2}, 8, nil, "8"},
		{jobspec.Layout{NumGPU: 0}, 8, nil, "8"}, // to hide them
		{jobspec.Layout{NumGPU: 2, GPUsPerNode: 2}, 0, nil, "0"},
		{jobspec.Layout{NumGPU: 2, GPUsPerNode: 0}, 0, broken, ""},
		{jobspec.Layout{NumGPU: 2, GPUsPerNode: 2}, 0, broken, "error"},
		{jobspec.Layout{NumGPU: 0}, 0, broken, "0"},
	} {
		o := planOptions(Config{})
		o.GPUs = func(context.Context, []string) (int, error) { return test.count, test.err }
		task := planTask(test.layout, nil)
		err := open(t, o).Resolve(t.Context(), &task)
		got := task.Facts[factGPUs]
		if errors.Is(err, broken) {
			got = "error"
		}
		if got != test.want {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

func TestCountGPUs(t *testing.T) {
	for script, want := range map[string]string{
		"": "0",
		"#!/bin/sh\nprintf '0, GPU-a\\n1, GPU-b\\n2, GPU-c\\n'":                                   "2",
		"#!/bin/sh\n[ \"$*\" = '--query-gpu=index,uuid --format=csv,noheader' ] && echo 0, GPU-a": "1",
		"#!/bin/sh\necho 'No devices were found'; exit 6":                                         "0",
		"#!/bin/sh\necho 'has failed'; echo badly >&2; exit 9":                                    "count GPUs: nvidia-smi: exit status 9: has failed badly",
	} {
		dir := t.TempDir()
		if script != "" {
			if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", dir)
		n, err := CountGPUs(t.Context(), []string{"CUDA_VISIBLE_DEVICES=0,GPU-c"})
		got := string(rune('0' + n))
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s", script, got)
		}
	}
}
