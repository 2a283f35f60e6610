//go:build unix

package launcher

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"qj/jobspec"
)

// place is where one rank stands among all.
type place struct {
	node, local int
	layout      jobspec.Layout
}

func (p place) rank() int { return p.node*p.layout.ProcsPerNode + p.local }

// agreed is what the nodes of a run settle before ranks start.
type agreed struct {
	masterAddr string
	masterPort int
	devices    []string // GPUs of this node; nil = the machine has none to hand out
}

// environ builds the environment of one rank: what the launcher inherited, less the traces of other
// launchers, then the variables that training code looks for, then the job's own and its secrets.
func environ(inherited []string, launch jobspec.Launch, private jobspec.Private, at place, a agreed) []string {
	env := map[string]string{}
	for _, kv := range inherited {
		name, value, _ := strings.Cut(kv, "=")
		if name != "" && !foreign(name) {
			env[name] = value
		}
	}
	defaults(env, launch, at.layout)
	maps.Copy(env, rankVariables(launch, at, a))
	if a.devices != nil {
		env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID" // the order of nvidia-smi; CUDA's own puts the fastest first
		env["CUDA_VISIBLE_DEVICES"] = strings.Join(a.devices, ",")
	}
	maps.Copy(env, launch.Job.Env)
	for name, value := range private.Secrets {
		env[name] = value.Reveal()
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// foreign says whether a variable was left by a launcher around us. Open MPI's and PMIx's would make a
// program believe that it belongs to their job; ours are set anew.
func foreign(name string) bool {
	for _, prefix := range []string{"OMPI_", "PMIX_", "PMI_", "TORCHELASTIC_", "QJ_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// defaults fills in what programs expect and may find missing.
func defaults(env map[string]string, launch jobspec.Launch, layout jobspec.Layout) {
	set := func(name, value string) {
		if env[name] == "" {
			env[name] = value
		}
	}
	set("PYTHONUNBUFFERED", "1")
	if layout.ProcsPerNode > 1 {
		set("OMP_NUM_THREADS", "1") // as torchrun does: else every process takes every core
	}
	set("USER", launch.User)
	set("LOGNAME", env["USER"])
	set("HOME", os.TempDir())
	set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

// rankVariables are those of torchrun, Open MPI and DeepSpeed at once. PMIX_* is left out on purpose:
// MPI_Init would look for a server that is not there.
func rankVariables(launch jobspec.Launch, at place, a agreed) map[string]string {
	rank, size := strconv.Itoa(at.rank()), strconv.Itoa(at.layout.WorldSize())
	local, localSize := strconv.Itoa(at.local), strconv.Itoa(at.layout.ProcsPerNode)
	node, nodes := strconv.Itoa(at.node), strconv.Itoa(at.layout.Nodes)
	return map[string]string{
		"RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": localSize,
		"GROUP_RANK": node, "GROUP_WORLD_SIZE": nodes, "NODE_RANK": node,
		"ROLE_RANK": rank, "ROLE_NAME": "default", "ROLE_WORLD_SIZE": size,
		"MASTER_ADDR": a.masterAddr, "MASTER_PORT": strconv.Itoa(a.masterPort),
		"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
		"TORCHELASTIC_RUN_ID": string(launch.Run),

		"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size,
		"OMPI_COMM_WORLD_LOCAL_RANK": local, "OMPI_COMM_WORLD_LOCAL_SIZE": localSize,
		"OMPI_COMM_WORLD_NODE_RANK": local, "OMPI_UNIVERSE_SIZE": size,

		"CROSS_RANK": node, "CROSS_SIZE": nodes, "LOCAL_SIZE": localSize,

		jobspec.EnvRunID: string(launch.Run), jobspec.EnvRestart: "0", "QJ_NODE": node,
	}
}

// lookPath finds a command as a shell in dir would, by the PATH of env. The error is fs.ErrNotExist or
// fs.ErrPermission at heart.
func lookPath(command, dir string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		return command, executable(command)
	}
	err := error(&os.PathError{Op: "find", Path: command, Err: os.ErrNotExist})
	for _, kv := range env {
		list, isPath := strings.CutPrefix(kv, "PATH=")
		if !isPath {
			continue
		}
		for _, folder := range filepath.SplitList(list) {
			if !filepath.IsAbs(folder) {
				folder = filepath.Join(dir, folder)
			}
			candidate := filepath.Join(folder, command)
			found := executable(candidate)
			if found == nil {
				return candidate, nil
			}
			if os.IsPermission(found) {
				err = found
			}
		}
	}
	return "", err
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return &os.PathError{Op: "execute", Path: path, Err: os.ErrPermission}
	}
	return nil
}
