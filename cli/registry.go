package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"qj/backends"
	"qj/blob"
	"qj/blob/file"
	"qj/configs"
	"qj/jobspec"
)

// The list of what this qj can talk to. A new backend or store is one line here.

// openStore makes a configured store usable. errors.ErrUnsupported marks a type that is not in the list.
func openStore(c *configs.Store) (blob.Store, error) {
	open := map[string]func(*configs.Store) (blob.Store, error){
		"file": func(c *configs.Store) (blob.Store, error) { return file.Open(c.Path) },
	}[c.Type]
	if open == nil {
		return nil, fmt.Errorf("open store %s: stores of type %s are not supported yet: %w", c.Name, c.Type, errors.ErrUnsupported)
	}
	s, err := open(c)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", c.Name, err)
	}
	if c.Prefix != "" {
		s = blob.Prefix(s, c.Prefix)
	}
	return blob.Retry(s, blob.Policy{}), nil
}

// storeRef tells a node how to reach the same store.
func storeRef(c *configs.Store) jobspec.StoreRef {
	return jobspec.StoreRef{Type: c.Type, Path: c.Path, Prefix: c.Prefix}
}

// openBackend decodes a cluster's section for its backend.
func (a *app) openBackend(c *configs.Cluster) (backends.Backend, error) {
	known := map[string]func(*configs.Cluster) (backends.Backend, error){
		"local": a.openLocal,
	}
	open := known[c.Backend]
	if open == nil {
		return nil, fmt.Errorf("backend %s is not supported yet, only %s", c.Backend, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return open(c)
}

// launchSettings are the launcher's, in the section of any cluster.
type launchSettings struct {
	Grace       jobspec.Duration `yaml:"grace"`        // between TERM and KILL
	JoinTimeout jobspec.Duration `yaml:"join_timeout"` // for the nodes of a run to come together
}

func (s launchSettings) orDefault() launchSettings {
	if s.Grace == 0 {
		s.Grace = jobspec.Duration(10 * time.Second)
	}
	if s.JoinTimeout == 0 {
		s.JoinTimeout = jobspec.Duration(10 * time.Minute)
	}
	return s
}
