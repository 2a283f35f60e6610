package cli

import (
	"errors"

	"qj/backends"
	"qj/configs"
)

var errNoLocal = errors.New("runs on this machine need Linux or macOS")

func (a *app) openLocal(*configs.Cluster) (backends.Backend, error) { return nil, errNoLocal }

func (a *app) launch() error { return errNoLocal }
