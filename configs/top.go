package configs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// topLevel is the shape of qj.yaml.
type topLevel struct {
	DefaultCluster *node            `yaml:"default_cluster"`
	User           *node            `yaml:"user"`
	Assets         *node            `yaml:"assets"`
	Clusters       map[string]*node `yaml:"clusters"`
	Stores         map[string]*node `yaml:"stores"`
}

// top checks the keys of the merged files, and takes what stands outside clusters and stores.
func (l *loader) top(root *node) (*topLevel, error) {
	t := &topLevel{}
	if err := l.decode(root, t, ""); err != nil {
		return nil, err
	}
	if err := l.named("clusters", t.Clusters); err != nil {
		return nil, err
	}
	if err := l.named("stores", t.Stores); err != nil {
		return nil, err
	}
	for _, key := range []struct {
		name  string
		value **node
	}{{"default_cluster", &t.DefaultCluster}, {"user", &t.User}, {"assets", &t.Assets}} {
		if (*key.value).null() {
			*key.value = nil
			continue
		}
		if err := expect(*key.value, scalar, key.name); err != nil {
			return nil, err
		}
		var err error
		if *key.value, err = interpolate(*key.value, key.name, l.Getenv); err != nil {
			return nil, err
		}
	}
	l.assets(t)
	if t.User != nil {
		l.cfg.User = t.User.scalar.Value
	}
	return t, nil
}

// named checks the names in a section, and that each is a mapping.
func (l *loader) named(section string, things map[string]*node) error {
	for _, name := range slices.Sorted(maps.Keys(things)) {
		n, path := things[name], join(section, name)
		if n.null() {
			things[name] = newMapping(n.at)
			continue
		}
		err := expect(n, mapping, path)
		if name == "" || strings.ContainsAny(name, " \t\r\n,/\\") {
			err = problemf(n.at, section, "%q is not a name (no spaces, commas or slashes)", name)
		}
		if err == nil {
			continue
		}
		if err := l.spoilt(path, err); err != nil {
			return err
		}
		delete(things, name)
	}
	return nil
}

// assets decides where pulled logs go.
func (l *loader) assets(t *topLevel) {
	switch folder := l.Getenv(envAssets); {
	case folder != "":
		// The seed's users stand in the project folder; from anywhere in it, logs go to the one place.
		t.Assets = newScalar(folder, place{src: &source{name: envAssets, dir: l.cfg.Project}})
	case t.Assets == nil:
		t.Assets = newScalar("assets", l.defaults)
	}
	l.cfg.Assets = absolute(t.Assets.at.src.dir, l.Home, t.Assets.scalar.Value)
	t.Assets = newScalar(l.cfg.Assets, t.Assets.at)
}

// choose decides which cluster is meant when a command names none.
func (l *loader) choose(t *topLevel) {
	pick := func(name, why string, at place) {
		l.cfg.Default, l.cfg.DefaultWhy = name, why
		t.DefaultCluster = newScalar(name, at)
	}
	said := func(why string) place { return place{src: &source{name: why}} }
	switch {
	case l.Options.Cluster != "":
		pick(l.Options.Cluster, "-c", said("-c"))
	case l.Getenv(envCluster) != "":
		pick(l.Getenv(envCluster), envCluster, said(envCluster))
	case t.DefaultCluster != nil:
		pick(t.DefaultCluster.scalar.Value, fmt.Sprintf("default_cluster in %v", t.DefaultCluster.at), t.DefaultCluster.at)
	case l.seeds.aml != "":
		pick(l.seeds.aml, l.seeds.amlWhy, said(l.seeds.amlWhy))
	case l.seeds.philly != "":
		pick(l.seeds.philly, phillyFile, said(phillyFile))
	case len(t.Clusters) == 1:
		pick("local", "no other cluster is configured", l.defaults)
	default:
		pick("local", "no default_cluster is set", l.defaults)
	}
}

// params lays -p over the chosen cluster's section.
func (l *loader) params(t *topLevel) error {
	for _, param := range l.Params {
		over, err := l.param(param)
		if err != nil {
			return err
		}
		section, ok := t.Clusters[l.cfg.Default]
		if !ok {
			if err := l.cfg.problem("clusters." + l.cfg.Default); err != nil {
				return err
			}
			return l.cfg.unknownCluster(l.cfg.Default, slices.Collect(maps.Keys(t.Clusters)))
		}
		t.Clusters[l.cfg.Default] = mergeThing(section, over, discriminators["clusters"])
	}
	return nil
}

func (l *loader) param(param string) (*node, error) {
	file, isFile := strings.CutPrefix(param, "@")
	if !isFile {
		root, _, err := parse([]byte(param), &source{name: "-p", dir: l.Dir})
		return root, err
	}
	path := absolute(l.Dir, l.Home, file)
	text, mode, err := readFile(path, true)
	src := &source{name: "-p @" + file, file: path, dir: filepath.Dir(path), mode: mode}
	if err != nil {
		return nil, &problem{at: place{src, 0}, err: err}
	}
	root, _, err := parse(text, src)
	if err == nil {
		l.warn(exposed(root, src)...)
	}
	return root, err
}
