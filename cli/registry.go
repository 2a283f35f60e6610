package cli

import (
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
		return nil, unsupportedf("open store %s: stores of type %s are not supported yet", c.Name, c.Type)
	}
	s, err := open(c)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", c.Name, err)
	}
	if c.Prefix != "" {
		s = blob.Prefix(s, c.Prefix)
	}
	// Somebody sits in front of it: a few seconds, then the truth.
	return blob.Retry(s, blob.Policy{Tries: 4, First: 200 * time.Millisecond, Max: 2 * time.Second}), nil
}

// storeRef tells a node how to reach the same store.
func storeRef(c *configs.Store) jobspec.StoreRef {
	return jobspec.StoreRef{Type: c.Type, Path: c.Path, Prefix: c.Prefix}
}

// openBackend decodes a cluster's section for its backend. errors.ErrUnsupported marks one that is not in
// the list.
func (a *app) openBackend(c *configs.Cluster) (backends.Backend, error) {
	known := map[string]func(*configs.Cluster) (backends.Backend, error){
		"local": a.openLocal,
	}
	open := known[c.Backend]
	if open == nil {
		return nil, unsupportedf("backend %s is not supported yet, only %s", c.Backend, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return open(c)
}
