//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strconv"

	"qj/backends"
	"qj/backends/local"
	"qj/configs"
)

// localSection is what a cluster with `backend: local` may have besides the keys of every cluster.
type localSection struct {
	local.Config   `yaml:",inline"`
	launchSettings `yaml:",inline"`
}

func (a *app) openLocal(c *configs.Cluster) (backends.Backend, error) {
	var section localSection
	if err := c.Decode(&section); err != nil {
		return nil, err
	}
	launcher, err := a.nodeProgram()
	if err != nil {
		return nil, err
	}
	return local.New(local.Options{
		Config: section.Config, Dir: filepath.Join(a.stateDir(), "local"), Launcher: launcher,
		GPUs: local.CountGPUs, User: strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid()), Environ: a.Environ,
	})
}

// launchSettingsOf reads the launcher's settings of a cluster.
func launchSettingsOf(c *configs.Cluster) (launchSettings, error) {
	var section localSection
	if err := c.Decode(&section); err != nil {
		return launchSettings{}, err
	}
	return section.orDefault(), nil
}
