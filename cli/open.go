package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"qj/blob"
	"qj/configs"
	"qj/jobspec"
	"qj/runs"
)

// opened is what commands share, made when first needed.
type opened struct {
	config  *configs.Config
	service *runs.Service

	mu       sync.Mutex // tables ask clusters side by side
	clusters map[string]runs.Cluster
}

// settings reads the configuration, once, and shows its warnings.
func (a *app) settings() (*configs.Config, error) {
	if a.open.config != nil {
		return a.open.config, nil
	}
	if a.Dir == "" {
		return nil, errors.New("find configuration: the current folder is unknown: it may have been removed")
	}
	if !filepath.IsAbs(a.Home) {
		return nil, withHint(fmt.Errorf("find configuration: HOME is %q, not an absolute path", a.Home), "export HOME=/home/you")
	}
	c, err := configs.Load(configs.Options{
		Dir: a.Dir, ConfigDir: a.configDir(), DataDir: a.dataDir(), Home: a.Home, Pinned: a.isPinned, Getenv: a.Getenv,
		File: a.global.config, Cluster: a.global.cluster, Params: a.global.params,
	})
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings {
		a.warn("%s", w)
	}
	a.open.config = c
	return c, nil
}

// warn tells something that does not stop the work.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.Stderr, "qj: "+format+"\n", args...)
}

// say is progress for people.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.Stderr, format+"\n", args...)
}

func (a *app) runsService() (*runs.Service, error) {
	if a.open.service != nil {
		return a.open.service, nil
	}
	c, err := a.settings()
	if err != nil {
		return nil, err
	}
	if err := a.checkSections(c); err != nil {
		return nil, err
	}
	stores, err := a.openStores(c)
	if err != nil {
		return nil, err
	}
	user := c.User
	if user == "" {
		user = a.User
	}
	a.open.service = &runs.Service{
		Stores: stores, Cluster: a.openCluster, Index: runs.Index{Dir: filepath.Join(a.stateDir(), "index")},
		User: jobspec.UserPart(user), By: a.User + "@" + a.Host, Now: a.Now, Random: rand.Reader,
		Warn: func(err error) { a.warn("%v", err) },
	}
	return a.open.service, nil
}

// checkSections finds what is wrong with the section of any cluster, chosen or not: a misspelt key should
// not wait for the day on which the cluster is needed.
func (a *app) checkSections(c *configs.Config) error {
	for _, name := range slices.Sorted(maps.Keys(c.Clusters)) {
		_, err := a.openBackend(c.Clusters[name])
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("open cluster %s: %w", name, err)
		}
	}
	return nil
}

// openStores opens every configured store that this qj can open. One that it cannot is an error where it
// is needed; tables go on without it.
func (a *app) openStores(c *configs.Config) (map[string]blob.Store, error) {
	stores := map[string]blob.Store{}
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		store, err := openStore(c.Stores[name])
		if errors.Is(err, errors.ErrUnsupported) {
			if a.global.verbose {
				a.warn("%v", err)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		stores[name] = store
	}
	return stores, nil
}

// openCluster makes a configured cluster ready for use.
func (a *app) openCluster(name string) (runs.Cluster, error) {
	a.open.mu.Lock()
	defer a.open.mu.Unlock()
	if c, ok := a.open.clusters[name]; ok {
		return c, nil
	}
	config, err := a.settings()
	if err != nil {
		return runs.Cluster{}, err
	}
	section, err := config.Cluster(name)
	if err != nil {
		return runs.Cluster{}, err
	}
	backend, err := a.openBackend(section)
	if err != nil {
		return runs.Cluster{}, fmt.Errorf("open cluster %s: %w", section.Name, err)
	}
	cluster := runs.Cluster{Name: section.Name, Type: section.Backend, Backend: backend, Store: section.Store}
	if a.open.clusters == nil {
		a.open.clusters = map[string]runs.Cluster{}
	}
	a.open.clusters[name] = cluster
	return cluster, nil
}

// store is an opened store by name.
func (a *app) store(name string) (blob.Store, error) {
	service, err := a.runsService()
	if err != nil {
		return nil, err
	}
	if s := service.Stores[name]; s != nil {
		return s, nil
	}
	c, err := a.settings()
	if err != nil {
		return nil, err
	}
	configured, err := c.Store(name)
	if err != nil {
		return nil, err
	}
	return openStore(configured) // for its error
}

// relative is dir below the project folder, in slashes; "" for the project folder itself.
func relative(project, dir string) (string, error) {
	rel, err := filepath.Rel(project, dir)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is not below the project folder %s", dir, project)
	}
	if rel == "." {
		return "", nil
	}
	return filepath.ToSlash(rel), nil
}
