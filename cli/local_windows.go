package cli

import (
	"qj/backends"
	"qj/configs"
)

var errNoLocal = unsupportedf("runs on this machine need Linux or macOS")

func (a *app) openLocal(*configs.Cluster) (backends.Backend, error) { return nil, errNoLocal }

func (a *app) launch() error { return errNoLocal }
