//go:build linux

package launcher

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"qj/jobspec"
)

func asMap(env []string) map[string]string {
	m := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		m[name] = value
	}
	return m
}

var someLaunch = jobspec.Launch{Run: "tester-1-0000000a", User: "tester"}

// Every variable that programs may look for, on the last rank of 2 nodes of 3.
func TestEnvironOfARank(t *testing.T) {
	layout := jobspec.Layout{NumGPU: 6, Nodes: 2, ProcsPerNode: 3, GPUsPerNode: 3}
	at := place{node: 1, local: 2, layout: layout}
	got := asMap(environ(nil, someLaunch, jobspec.Private{}, at, agreed{masterAddr: "host0", masterPort: 4711, devices: []string{"3", "4", "5"}}))
	want := map[string]string{
		"RANK": "5", "LOCAL_RANK": "2", "WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "3",
		"GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2", "NODE_RANK": "1",
		"ROLE_RANK": "5", "ROLE_NAME": "default", "ROLE_WORLD_SIZE": "6",
		"MASTER_ADDR": "host0", "MASTER_PORT": "4711",
		"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RUN_ID": "tester-1-0000000a",
		"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": "3,4,5", "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
		"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "6", "OMPI_COMM_WORLD_LOCAL_RANK": "2",
		"OMPI_COMM_WORLD_LOCAL_SIZE": "3", "OMPI_COMM_WORLD_NODE_RANK": "2", "OMPI_UNIVERSE_SIZE": "6",
		"CROSS_RANK": "1", "CROSS_SIZE": "2", "LOCAL_SIZE": "3",
		"QJ_RUN_ID": "tester-1-0000000a", "QJ_RESTART": "0", "QJ_NODE": "1",
		"USER": "tester", "LOGNAME": "tester", "HOME": os.TempDir(),
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	if !maps.Equal(got, want) {
		t.Errorf("environment is\n%v\nwant\n%v", got, want)
	}
}

func TestEnvironOverWhatIsInherited(t *testing.T) {
	const absent = "\x00"
	one := jobspec.Layout{Nodes: 1, ProcsPerNode: 1}
	tests := []struct {
		name      string
		inherited []string
		layout    jobspec.Layout
		job       map[string]string
		secrets   map[string]jobspec.Secret
		devices   []string
		want      map[string]string
	}{
		{name: "kept", inherited: []string{"HOME=/home/me", "USER=me", "PATH=/bin", "SLURM_PROCID=3", "A=x=y"}, layout: one,
			want: map[string]string{"HOME": "/home/me", "USER": "me", "LOGNAME": "me", "PATH": "/bin", "SLURM_PROCID": "3", "A": "x=y"}},
		{name: "empty is missing", inherited: []string{"HOME=", "USER=", "LOGNAME=x"}, layout: one,
			want: map[string]string{"HOME": os.TempDir(), "USER": "tester", "LOGNAME": "x"}},
		{name: "other launchers", layout: one,
			inherited: []string{"OMPI_MCA_pml=ob1", "OMPI_COMM_WORLD_RANK=9", "PMIX_RANK=9", "PMI_FD=7", "TORCHELASTIC_USE_AGENT_STORE=True", "QJ_RUN_ID=other", "RANK=9"},
			want: map[string]string{"OMPI_MCA_pml": absent, "PMIX_RANK": absent, "PMI_FD": absent, "TORCHELASTIC_USE_AGENT_STORE": absent,
				"OMPI_COMM_WORLD_RANK": "0", "QJ_RUN_ID": "tester-1-0000000a", "RANK": "0"}},
		{name: "one process takes every core", layout: one, want: map[string]string{"OMP_NUM_THREADS": absent}},
		{name: "threads as they are set", inherited: []string{"OMP_NUM_THREADS=4"}, layout: jobspec.Layout{Nodes: 1, ProcsPerNode: 2},
			want: map[string]string{"OMP_NUM_THREADS": "4"}},
		{name: "the job has the last word", inherited: []string{"A=1", "PYTHONUNBUFFERED=0"}, layout: one,
			job: map[string]string{"A": "2", "RANK": "seven", "TOKEN": "plain"}, secrets: map[string]jobspec.Secret{"TOKEN": "hush"},
			want: map[string]string{"A": "2", "RANK": "seven", "TOKEN": "hush", "PYTHONUNBUFFERED": "0"}},
		{name: "no GPUs to hand out", inherited: []string{"CUDA_VISIBLE_DEVICES=2"}, layout: one, want: map[string]string{"CUDA_VISIBLE_DEVICES": "2"}},
		{name: "none of the GPUs", inherited: []string{"CUDA_VISIBLE_DEVICES=2"}, layout: one, devices: []string{},
			want: map[string]string{"CUDA_VISIBLE_DEVICES": ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			launch := someLaunch
			launch.Job.Env = test.job
			env := environ(test.inherited, launch, jobspec.Private{Secrets: test.secrets}, place{layout: test.layout}, agreed{devices: test.devices})
			if !slices.IsSorted(env) {
				t.Errorf("not sorted: %q", env)
			}
			got := asMap(env)
			for name, want := range test.want {
				value, there := got[name]
				if there != (want != absent) || there && value != want {
					t.Errorf("%s is %q (there: %v), want %q", name, value, there, want)
				}
			}
		})
	}
}

// What a rank really gets: its environment, the folder, and nothing on stdin.
func TestRankSeesItsEnvironment(t *testing.T) {
	r := newRun(t, rankCommand("environ")...)
	r.launch.Job.Subdir = "sub"
	r.launch.Job.Env = map[string]string{"GREETING": "two\nlines = one"}
	r.private.Secrets = map[string]jobspec.Secret{"TOKEN": "hush"}
	r.environ = append(r.environ, "PMIX_RANK=3")
	n := r.start()
	if code := n.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	logs := r.logs()
	var saw told
	if err := json.Unmarshal([]byte(logs["0/rank-0"]), &saw); err != nil {
		t.Fatal(err)
	}
	env := asMap(saw.Env)
	for name, want := range map[string]string{"GREETING": "two\nlines = one", "TOKEN": "hush", "RANK": "0", "MASTER_ADDR": "127.0.0.1"} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if _, there := env["PMIX_RANK"]; there {
		t.Error("PMIX_RANK reached the rank")
	}
	if saw.Stdin != "" || saw.Dir != filepath.Join(r.work(0), "code", "sub") {
		t.Errorf("stdin holds %q, folder is %s", saw.Stdin, saw.Dir)
	}
	for name, text := range logs {
		if name != "0/rank-0" && strings.Contains(text, "hush") {
			t.Errorf("%s tells a secret", name)
		}
	}
}

func TestLookPath(t *testing.T) {
	dir, bin, other := t.TempDir(), t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{
		filepath.Join(dir, "here.sh"): 0o755, filepath.Join(bin, "tool"): 0o644, filepath.Join(other, "tool"): 0o755,
		filepath.Join(bin, "data"): 0o644,
	} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + bin + ":" + other}
	tests := []struct {
		command, want string
		err           error
	}{
		{"./here.sh", filepath.Join(dir, "here.sh"), nil},
		{"here.sh", "", fs.ErrNotExist}, // as in a shell: not without ./
		{"tool", filepath.Join(other, "tool"), nil},
		{"data", "", fs.ErrPermission},
		{filepath.Join(other, "tool"), filepath.Join(other, "tool"), nil},
		{"./none", "", fs.ErrNotExist},
		{dir, "", fs.ErrPermission},
	}
	for _, test := range tests {
		got, err := lookPath(test.command, dir, env)
		if !errors.Is(err, test.err) || err == nil && got != test.want {
			t.Errorf("lookPath(%q) = %q, %v, want %q, %v", test.command, got, err, test.want, test.err)
		}
	}
	if got, err := lookPath("here.sh", dir, []string{"PATH=:" + bin}); err != nil || got != filepath.Join(dir, "here.sh") {
		t.Errorf("with the current folder in the PATH: %q, %v", got, err)
	}
}
