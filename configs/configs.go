// Package configs finds, merges and strictly decodes the YAML of clusters and blob stores, and says of
// every value where it came from. It reads qj.yaml, and the files of the tool that qj replaces (the seed)
// at their own places. It knows the names of backends and the keys that all clusters share, and the
// sections of the seed's two platforms; the rest of a section is decoded later, by its backend's own
// struct. It opens no connection, starts nothing, and reads no environment but the one it is given.
package configs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options holds everything that Load may know of the outside.
type Options struct {
	Dir       string                   // where the user stands; the project folder is found upwards from it
	ConfigDir string                   // the user's own configuration folder; may not exist
	DataDir   string                   // the user's data folder: the store `local` lies in it
	Home      string                   // for ~ in paths
	Pinned    func(dir string) bool    // whether an earlier init pinned a snapshot for dir; may be nil
	Getenv    func(name string) string // for ${env:NAME} and the variables below; may be nil
	File      string                   // --config: takes the place of the nearest qj.yaml
	Cluster   string                   // -c
	Params    []string                 // -p: YAML or @FILE, laid over the chosen cluster's section
}

// The variables that Load reads.
const (
	envCluster        = "QJ_CLUSTER"
	envAMLConfig      = "AML_CONFIG_PATH"
	envAssets         = "AML_LOG_FOLDER"
	envPhillyPassword = "PHILLY_PASSWORD"
)

// Config is the configuration in force.
type Config struct {
	Project    string // absolute: the nearest folder upwards with qj.yaml, aux_data/ or an earlier init, else Dir
	Clusters   map[string]*Cluster
	Stores     map[string]*Store
	Default    string // the chosen cluster; it may be unknown, then Cluster says so
	DefaultWhy string // what chose it
	Assets     string // absolute: where pulled logs go
	User       string // the setting `user`, may be empty

	Settings []Setting // every setting in force, sorted by path, secrets masked
	Warnings []string
	// Problems are clusters and stores that cannot be used as configured. Cluster and Store return the
	// error to whoever wants one of them, and `qj config` shows all; nobody else is kept from working.
	Problems []Problem
	// Files are the configuration and account files inside the project, relative to it, with slashes.
	// They hold secrets and are never part of a snapshot.
	Files []string
}

// Problem is what is wrong with a section, like "clusters.gpu", or with a file.
type Problem struct {
	Path string
	Err  error
}

// Setting is one value in force.
type Setting struct {
	Path   string `json:"path"`   // "clusters.gpu.gpu_per_node"
	Value  string `json:"value"`  // secrets show as ***
	Origin string `json:"origin"` // "qj.yaml:12", "-p", "QJ_CLUSTER", "default"
}

// Cluster finds a cluster by name, the chosen one for "". It is ready for use: its store exists.
func (c *Config) Cluster(name string) (*Cluster, error) {
	name = cmp.Or(name, c.Default)
	if err := c.problem("clusters." + name); err != nil {
		return nil, err
	}
	cluster, ok := c.Clusters[name]
	if !ok {
		return nil, c.unknownCluster(name, slices.Collect(maps.Keys(c.Clusters)))
	}
	if cluster.Store == "" {
		return nil, fmt.Errorf("cluster %s: several stores are configured (%s): choose one by `store: NAME` in its section, or -p 'store: NAME'",
			name, strings.Join(c.configuredStores(), ", "))
	}
	for _, store := range cluster.stores() {
		if _, err := c.Store(store); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", name, err)
		}
	}
	return cluster, nil
}

// Store finds a store by name.
func (c *Config) Store(name string) (*Store, error) {
	if err := c.problem("stores." + name); err != nil {
		return nil, err
	}
	store, ok := c.Stores[name]
	if !ok {
		return nil, c.unknownStore(name)
	}
	return store, nil
}

func (c *Config) unknownCluster(name string, usable []string) error {
	why := ""
	if name == c.Default {
		why = " (from " + c.DefaultWhy + ")"
	}
	known := c.names("clusters.", usable)
	return fmt.Errorf("unknown cluster %q%s%s; known: %s", name, why, didYouMean(name, known), strings.Join(known, ", "))
}

func (c *Config) unknownStore(name string) error {
	known := c.names("stores.", slices.Collect(maps.Keys(c.Stores)))
	return fmt.Errorf("unknown store %q%s; known: %s", name, didYouMean(name, known), strings.Join(known, ", "))
}

func (c *Config) problem(path string) error {
	for _, p := range c.Problems {
		if p.Path == path {
			return p.Err
		}
	}
	return nil
}

// names adds to the usable names those with a problem: they are known, too.
func (c *Config) names(section string, usable []string) []string {
	for _, p := range c.Problems {
		if name, ok := strings.CutPrefix(p.Path, section); ok {
			usable = append(usable, name)
		}
	}
	slices.Sort(usable)
	return slices.Compact(usable)
}

// configuredStores leaves out the store that is there without any configuration.
func (c *Config) configuredStores() []string {
	names := c.names("stores.", slices.Collect(maps.Keys(c.Stores)))
	return slices.DeleteFunc(names, func(name string) bool {
		store, ok := c.Stores[name]
		return ok && store.builtIn
	})
}
