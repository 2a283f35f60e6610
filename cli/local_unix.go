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

func (a *app) openLocal(c *configs.Cluster) (backends.Backend, error) {
	var section local.Config
	if err := c.Decode(&section); err != nil {
		return nil, err
	}
	launcher, unpack, err := a.nodeProgram()
	if err != nil {
		return nil, err
	}
	return local.New(local.Options{
		Config: section, Dir: filepath.Join(a.stateDir(), "local"), Launcher: launcher, Unpack: unpack,
		GPUs: local.CountGPUs, Host: a.Host, User: strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid()), Environ: a.Environ,
	})
}
