package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"qj/jobspec"
)

// The backends whose configuration this package knows something of.
const (
	backendLocal  = "local"
	backendAML    = "aml"
	backendPhilly = "philly"
)

// Cluster is a named place to run jobs at: the keys that all backends share. Decode has the others.
type Cluster struct {
	Name         string
	Backend      string
	Store        string // name of the blob store; Config.Cluster makes sure that it is there
	NumGPU       int    // the default of -n
	GPUPerNode   *int   // nil: not set
	MultiProcess bool
	Grace        jobspec.Duration // between TERM and KILL when ranks are stopped
	JoinTimeout  jobspec.Duration // how long the nodes of a run wait for each other
	Env          map[string]string
	Secrets      []string
	Folders      []Folder // by name
	CodePath     *Folder  // the seed's fixed place for the zipped code; nil if not configured

	own  *node
	home string
}

// stores are the names of all stores that the cluster's jobs need.
func (c *Cluster) stores() []string {
	names := []string{c.Store}
	for _, f := range c.Folders {
		if f.Store != "" {
			names = append(names, f.Store)
		}
	}
	return names
}

// common is the part of every cluster's section that no backend decodes.
type common struct {
	Backend      string           `yaml:"backend"`
	Store        string           `yaml:"store"`
	NumGPU       int              `yaml:"num_gpu"`
	GPUPerNode   *int             `yaml:"gpu_per_node"`
	MultiProcess bool             `yaml:"multi_process"`
	Grace        jobspec.Duration `yaml:"grace"`
	JoinTimeout  jobspec.Duration `yaml:"join_timeout"`
	Env          map[string]*node `yaml:"env"`
	Secrets      []string         `yaml:"secrets"`
	ConfigParam  *node            `yaml:"config_param"`
	CodePath     *node            `yaml:"code_path"`
}

func commonKeys() []string {
	return slices.Sorted(maps.Keys(fieldsOf(reflect.ValueOf(common{}))))
}

// own is the part of a section that its backend decodes.
func own(section *node) *node {
	shared := commonKeys()
	out := newMapping(section.at)
	for _, key := range section.order {
		if !slices.Contains(shared, key) && !isFolderKey(key) {
			out.set(key, section.fields[key])
		}
	}
	return out
}

// Decode fills into, a pointer to a struct with `yaml` tags, from the keys that belong to the cluster's
// backend. A key that the struct lacks is an error. String fields tagged `config:"path"` come out absolute.
func (c *Cluster) Decode(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode cluster %s: want a pointer to a struct, not %T", c.Name, into)
	}
	// What the seed's files hold besides was already warned of by Load.
	d := &decoder{home: c.home, also: commonKeys()}
	return d.decode(c.own, v.Elem(), "clusters."+c.Name)
}

func (l *loader) loadClusters(t *topLevel) error {
	for _, name := range slices.Sorted(maps.Keys(t.Clusters)) {
		path := "clusters." + name
		if l.cfg.problem(path) != nil {
			continue
		}
		cluster, err := l.cluster(t, name, path)
		if err != nil {
			if err := l.spoilt(path, err); err != nil {
				return err
			}
			continue
		}
		l.cfg.Clusters[name] = cluster
	}
	return nil
}

func (l *loader) cluster(t *topLevel, name, path string) (*Cluster, error) {
	section, err := l.platform(t.Clusters[name], path)
	t.Clusters[name] = section
	if err != nil {
		return nil, err
	}
	fill(section, "num_gpu", plainScalar("1", l.defaults))
	fill(section, "multi_process", plainScalar("true", l.defaults))
	fill(section, "grace", plainScalar("10s", l.defaults))
	fill(section, "join_timeout", plainScalar("10m", l.defaults))
	c := &Cluster{Name: name, own: own(section), home: l.Home}
	if err := l.shared(c, section, path); err != nil {
		return nil, err
	}
	if err := l.folders(c, section, path); err != nil {
		return nil, err
	}
	return c, l.chooseStore(c, section, path)
}

// platform adds and checks what is particular to the seed's two platforms.
func (l *loader) platform(section *node, path string) (*node, error) {
	switch section.text("backend") {
	case backendAML:
		return l.aml(section, path)
	case backendPhilly:
		return l.philly(section, path)
	}
	return section.clone(), require(section, path, [][]string{{"backend"}})
}

func (l *loader) shared(c *Cluster, section *node, path string) error {
	keys := newMapping(section.at)
	for _, key := range commonKeys() {
		if value := section.get(key); value != nil {
			keys.set(key, value)
		}
	}
	var s common
	if err := l.decode(keys, &s, path); err != nil {
		return err
	}
	switch {
	case s.NumGPU < 0:
		return problemf(section.get("num_gpu").at, join(path, "num_gpu"), "must not be negative")
	case s.GPUPerNode != nil && *s.GPUPerNode < 0:
		return problemf(section.get("gpu_per_node").at, join(path, "gpu_per_node"), "must not be negative")
	}
	for key, d := range map[string]jobspec.Duration{"grace": s.Grace, "join_timeout": s.JoinTimeout} {
		if d < 0 {
			return problemf(section.get(key).at, join(path, key), "must not be negative")
		}
	}
	env, err := environment(s.Env, join(path, "env"))
	c.Backend, c.NumGPU, c.GPUPerNode, c.MultiProcess = s.Backend, s.NumGPU, s.GPUPerNode, s.MultiProcess
	c.Grace, c.JoinTimeout, c.Env, c.Secrets = s.Grace, s.JoinTimeout, env, s.Secrets
	return err
}

// chooseStore takes the store that the section names, else the one that holds the seed's code, else the
// only one that is configured, else the local one. It leaves the choice open where several are
// configured: that matters only to who uses the cluster.
func (l *loader) chooseStore(c *Cluster, section *node, path string) error {
	if n := section.get("store"); n != nil {
		c.Store = n.scalar.Value
		if !slices.Contains(l.cfg.storeNames(), c.Store) {
			return problemf(n.at, join(path, "store"), "%w", l.cfg.unknownStore(c.Store))
		}
		return nil
	}
	at := l.defaults
	if account := l.codeAccount(c, section); account != nil {
		c.Store, at = l.accounts[realPath(l.resolve(account))], account.at
	} else if configured := l.storesFor(section); len(configured) == 1 {
		c.Store = configured[0]
	} else if len(configured) == 0 {
		c.Store = "local"
	}
	if c.Store != "" {
		section.set("store", newScalar(c.Store, at))
	}
	return nil
}

// storesFor are the configured stores that a cluster may take without naming one. The built-in cluster
// takes none that needs an account: nobody said that this machine's runs go to a cloud.
func (l *loader) storesFor(section *node) []string {
	names := l.cfg.configuredStores()
	if section.get("backend").at.src != l.builtin.src {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		store := l.cfg.Stores[name]
		return store == nil || store.Type != storeFile
	})
}

// codeAccount is the node that names the account file of the seed's code_path.
func (l *loader) codeAccount(c *Cluster, section *node) *node {
	if c.Backend == backendPhilly && c.CodePath != nil {
		if account := phillyAccount(section, c.CodePath.Path); account != nil {
			return account
		}
	}
	for _, keys := range [][]string{{"code_path", accountKey}, {"config_param", "code_path", accountKey}, {accountKey}} {
		if account := section.get(keys...); account != nil && account.kind == scalar {
			return account
		}
	}
	return nil
}
