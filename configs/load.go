package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
)

// loader carries what the steps of Load share.
type loader struct {
	Options
	cfg      *Config
	defaults place             // origin "default"
	builtin  place             // origin "default", of what counts as not configured
	accounts map[string]string // real path of an account file → name of its store
	seeds    seeds
}

// Load reads all configuration. It fails on anything wrong in qj.yaml, --config and -p. What is wrong in
// one of the seed's files, or waits for a variable or a file that is not there, only makes the cluster or
// store unusable: see Config.Problems.
func Load(o Options) (*Config, error) {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the project folder: %w", err)
	}
	o.Dir = dir
	project := findProject(dir, o.Pinned)
	l := &loader{
		Options:  o,
		cfg:      &Config{Project: project, Clusters: map[string]*Cluster{}, Stores: map[string]*Store{}},
		defaults: place{src: &source{name: "default", dir: project}},
		builtin:  place{src: &source{name: "default", dir: o.DataDir}},
		accounts: map[string]string{},
	}
	root, err := l.layers()
	if err != nil {
		return nil, err
	}
	t, err := l.top(root)
	if err != nil {
		return nil, err
	}
	l.choose(t)
	if err := l.params(t); err != nil {
		return nil, err
	}
	l.expand("clusters", t.Clusters)
	l.expand("stores", t.Stores)
	l.findStores(t)
	if err := l.loadStores(t); err != nil {
		return nil, err
	}
	if err := l.loadClusters(t); err != nil {
		return nil, err
	}
	l.finish(t)
	return l.cfg, nil
}

// layers merges, from the lowest: what is built in, the user's own qj.yaml, the seed's files, the
// project's qj.yaml (or --config).
func (l *loader) layers() (*node, error) {
	root := l.builtIn()
	own, nearest := l.qjFiles()
	if own != "" {
		layer, err := l.read(own, false, false, filepath.Dir(own))
		if err != nil {
			return nil, err
		}
		root = mergeFiles(root, layer)
	}
	l.readSeeds()
	root = mergeFiles(root, l.seeds.layer())
	if nearest != "" {
		layer, err := l.read(nearest, l.File != "", false, filepath.Dir(nearest))
		if err != nil {
			return nil, err
		}
		root = mergeFiles(root, layer)
	}
	return root, nil
}

// builtIn is a cluster and a store for those who configure nothing.
func (l *loader) builtIn() *node {
	root, clusters, stores := newMapping(l.builtin), newMapping(l.builtin), newMapping(l.builtin)
	cluster, store := newMapping(l.builtin), newMapping(l.builtin)
	cluster.set("backend", newScalar(backendLocal, l.builtin))
	store.set("type", newScalar(storeFile, l.builtin))
	store.set("path", newScalar(filepath.Join(l.DataDir, "store"), l.builtin))
	clusters.set("local", cluster)
	stores.set("local", store)
	root.set("clusters", clusters)
	root.set("stores", stores)
	return root
}

// qjFiles are the user's own qj.yaml and the nearest one upwards, "" where there is none.
func (l *loader) qjFiles() (own, nearest string) {
	if path := filepath.Join(l.ConfigDir, fileName); l.ConfigDir != "" && isFile(path) {
		own = path
	}
	if dir, ok := upwards(l.Dir, func(d string) bool { return isFile(filepath.Join(d, fileName)) }); ok {
		nearest = filepath.Join(dir, fileName)
		l.noteFile(nearest)
	}
	if l.File != "" {
		nearest = absolute(l.Dir, l.Home, l.File)
	}
	if own != "" && sameFile(own, nearest) {
		own = ""
	}
	return own, nearest
}

// read parses a file, notes it as configuration, and warns if it shows secrets to others.
func (l *loader) read(path string, named, seed bool, dir string) (*node, error) {
	l.noteFile(path)
	src := &source{name: shown(l.cfg.Project, l.Home, path), file: path, dir: dir, seed: seed}
	text, mode, err := readFile(path, named)
	if err != nil {
		return nil, &problem{at: place{src, 0}, err: err}
	}
	src.mode = mode
	if filepath.Ext(path) == ".json" {
		text = untab(text)
	}
	root, warnings, err := parse(text, src)
	if err != nil {
		return nil, err
	}
	l.warn(warnings...)
	l.warn(exposed(root, src)...)
	return root, nil
}

func (l *loader) warn(warnings ...string) {
	for _, w := range warnings {
		if !slices.Contains(l.cfg.Warnings, w) {
			l.cfg.Warnings = append(l.cfg.Warnings, w)
		}
	}
}

// noteFile keeps a file out of snapshots, and what it links to as well.
func (l *loader) noteFile(path string) {
	if !exists(path) {
		return
	}
	paths := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		paths = append(paths, real)
	}
	project, err := filepath.EvalSymlinks(l.cfg.Project)
	if err != nil {
		project = l.cfg.Project
	}
	for _, p := range paths {
		for _, folder := range []string{l.cfg.Project, project} {
			if rel, ok := within(folder, p); ok && !slices.Contains(l.cfg.Files, rel) {
				l.cfg.Files = append(l.cfg.Files, rel)
			}
		}
	}
}

// spoilt records that a section cannot be used. Anything wrong in qj's own files ends Load instead.
func (l *loader) spoilt(path string, err error) error {
	var p *problem
	if !errors.As(err, &p) || !p.late && !p.at.src.seed {
		return err
	}
	if l.cfg.problem(path) == nil {
		l.cfg.Problems = append(l.cfg.Problems, Problem{path, err})
	}
	l.warn(err.Error())
	return nil
}

// decode fills into, a pointer, strictly.
func (l *loader) decode(n *node, into any, path string, also ...string) error {
	d := &decoder{home: l.Home, also: also}
	err := d.decode(n, reflect.ValueOf(into).Elem(), path)
	l.warn(d.warnings...)
	return err
}

// expand replaces ${env:NAME} in each named section. It does not warn: a file that several people share
// may name variables that only some of them have.
func (l *loader) expand(section string, things map[string]*node) {
	for _, name := range slices.Sorted(maps.Keys(things)) {
		path := join(section, name)
		n, err := interpolate(things[name], path, l.Getenv)
		if things[name] = n; err != nil {
			l.cfg.Problems = append(l.cfg.Problems, Problem{path, err})
		}
	}
}

// finish works out what needs all sections, and puts lists in order.
func (l *loader) finish(t *topLevel) {
	l.settings(t)
	slices.Sort(l.cfg.Warnings)
	slices.Sort(l.cfg.Files)
	slices.SortFunc(l.cfg.Problems, func(a, b Problem) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(l.cfg.Settings, func(a, b Setting) int { return cmp.Compare(a.Path, b.Path) })
}
